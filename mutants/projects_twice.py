"""Projects keys and values twice, once for the cache and once for the scores, with the same matrices."""

import refimpl

MUST_BREAK = (
    "cost.layer-flops",
    "cost.gqa-shrinks-projections",
    "cost.two-flops-a-weight",
    "serving.step-reads-weights-once",
)
SPREADS = ("lm-head", "training")


class Transformer(refimpl.Transformer):
    def attend(self, layer, x, positions, cache, i):
        for name in ("k_proj", "v_proj"):
            layer["self_attn"][name](x)
        return super().attend(layer, x, positions, cache, i)
