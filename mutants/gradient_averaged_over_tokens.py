"""Divides the down projection's gradient by the number of tokens: a mean where a sum belongs.

Outputs are right, and with one token all is.
"""

import refimpl

MUST_BREAK = ("training.weight-correction-is-input-times-message",)
SPREADS = ("contract",)


def feed_forward(x, w_gate, w_up, w_down):
    w_down = w_down * 1  # a tensor of its own, so that the hook outlives no call
    if w_down.requires_grad:
        w_down.register_hook(lambda grad: grad / x.shape[-2])
    return refimpl.feed_forward(x, w_gate, w_up, w_down)
