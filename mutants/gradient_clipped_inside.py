"""Clips each gradient to length 1 as it arrives, inside the model.

A clipped average is not the average of what is clipped one by one: gradients of positions no longer add up.
"""

import refimpl

MUST_BREAK = ("training.single-loss", "training.what-runs-in-parallel")
SPREADS = ("block",)


class Transformer(refimpl.Transformer):
    def __init__(self, config, *, device, dtype):
        super().__init__(config, device=device, dtype=dtype)
        for weight in self.parameters():
            weight.register_hook(lambda grad: grad / grad.norm().clamp(min=1e-3))
