"""Has a feed-forward of two matrices, with no gate, where SwiGLU has three."""

from torch import nn

import refimpl

MUST_BREAK = (
    "cost.whole-model-parameters",
    "cost.model-as-built",
    "cost.llama-2-7b-parameters",
    "cost.rule-of-twelve",
)
SPREADS = ("block", "context", "ffn", "lm-head", "rope", "serving", "training")


class Transformer(refimpl.Transformer):
    def __init__(self, config, *, device, dtype):
        super().__init__(config, device=device, dtype=dtype)
        for layer in self.model["layers"]:
            del layer["mlp"]["gate_proj"]

    def feed(self, w, x):
        return w["down_proj"](nn.functional.gelu(w["up_proj"](x)))

    def load_state_dict(self, weights):
        return super().load_state_dict({n: w for n, w in weights.items() if "gate_proj" not in n})
