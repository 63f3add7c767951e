"""Changes each weight as soon as its gradient is there, before the optimizer's step.

Layers further back get messages through weights that have moved since the forward pass.
"""

import refimpl

MUST_BREAK = ("training.optimizer-keeps-two-per-weight",)


class Transformer(refimpl.Transformer):
    def __init__(self, config, *, device, dtype):
        super().__init__(config, device=device, dtype=dtype)
        for weight in self.parameters():
            weight.register_hook(lambda grad, weight=weight: move(weight, grad))


def move(weight, grad):
    weight.data.sub_(0.1 * grad)
