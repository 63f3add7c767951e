"""Mixes weight decay into the gradients inside the model, as L2 regularisation that no loss mentions.

AdamW exists because this is not the same as decaying the weights (Loshchilov & Hutter 2017).
"""

import refimpl

MUST_BREAK = ("training.message-comes-from-behind", "training.every-weight-gets-its-gradient")
SPREADS = ("generation",)


class Transformer(refimpl.Transformer):
    def __init__(self, config, *, device, dtype):
        super().__init__(config, device=device, dtype=dtype)
        for weight in self.parameters():
            weight.register_hook(lambda grad, weight=weight: grad + 0.1 * weight.detach())
