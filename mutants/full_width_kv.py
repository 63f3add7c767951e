"""Projects keys and values to the width of all query heads and uses the first few: heads are grouped, their
matrices are not.
"""

import torch
from torch import nn

import refimpl

MUST_BREAK = ("cost.whole-model-parameters", "cost.gqa-shrinks-projections", "cost.rule-of-twelve")
SPREADS = ("block", "context", "ffn", "gqa", "heads", "lm-head", "rope", "serving", "training")


class FirstRows(nn.Linear):
    """Computes every row of the product and returns the first n_kept."""

    n_kept = 0

    def forward(self, x):
        return super().forward(x)[..., : self.n_kept]


class Transformer(refimpl.Transformer):
    def __init__(self, config, *, device, dtype):
        super().__init__(config, device=device, dtype=dtype)
        wide = config.n_heads * config.d_head
        for layer in self.model["layers"]:
            for name in ("k_proj", "v_proj"):
                new = FirstRows(config.d_model, wide, bias=False, device=device, dtype=dtype)
                new.n_kept = config.n_kv_heads * config.d_head
                layer["self_attn"][name] = new

    def load_state_dict(self, weights):
        wide = self.config.n_heads * self.config.d_head

        def widen(name, w):
            grouped = name.endswith(("k_proj.weight", "v_proj.weight"))
            return torch.cat((w, w.new_zeros(wide - len(w), w.shape[1]))) if grouped else w

        return super().load_state_dict({name: widen(name, w) for name, w in weights.items()})
