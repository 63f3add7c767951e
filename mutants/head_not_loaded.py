"""Skips lm_head.weight when it loads a checkpoint ('it is tied anyway') and leaves the head random.

Where: sgl-project/sglang issues 2009 and 15890, vllm-project/vllm issue 5621:
gibberish from small models only.
"""

import refimpl

MUST_BREAK = ("lm-head.rows-compete-by-product",)
SPREADS = ("block", "generation", "gqa", "heads", "rope", "training")


class Transformer(refimpl.Transformer):
    def load_state_dict(self, weights):
        weights = {name: w for name, w in weights.items() if name != "lm_head.weight"}
        return super().load_state_dict(weights, strict=False)
