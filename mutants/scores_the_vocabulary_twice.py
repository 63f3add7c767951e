"""Computes the logits twice, once for the answer and once for a loss or a log that nobody reads.

At 128K words that is 7% more of a whole 8B model, and more of a small one.
"""

import refimpl

MUST_BREAK = (
    "cost.two-flops-a-weight",
    "serving.step-reads-weights-once",
    "cost.tied-table-still-multiplies",
)
SPREADS = ("lm-head", "training")


class Transformer(refimpl.Transformer):
    def __init__(self, config, *, device, dtype):
        super().__init__(config, device=device, dtype=dtype)
        self.lm_head.register_forward_hook(lambda head, given, made: head.forward(*given))
