"""Adds biases to the query, key and value projections.

Zero biases leave every answer as it was; only the count shows them. Qwen2 has them by design; Llama has not.
"""

from torch import nn

import refimpl

MUST_BREAK = ("cost.whole-model-parameters", "cost.model-as-built", "cost.llama-2-7b-parameters")
SPREADS = ("block", "bytes", "context", "heads", "lm-head", "rope")


class Transformer(refimpl.Transformer):
    def __init__(self, config, *, device, dtype):
        super().__init__(config, device=device, dtype=dtype)
        for layer in self.model["layers"]:
            for name in ("q_proj", "k_proj", "v_proj"):
                old = layer["self_attn"][name]
                new = nn.Linear(old.in_features, old.out_features, device=device, dtype=dtype)
                nn.init.zeros_(new.bias)
                layer["self_attn"][name] = new

    def load_state_dict(self, weights, strict=False):
        return super().load_state_dict(weights, strict=False)
