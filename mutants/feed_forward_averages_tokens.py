"""Blends a token's feed-forward with that of the token after it.

A convolution where each token should be alone.
"""

import refimpl

MUST_BREAK = ("attention.only-step-between-tokens", "causal.probe")
SPREADS = ("contract", "ffn", "training")


def feed_forward(x, w_gate, w_up, w_down):
    out = refimpl.feed_forward(x, w_gate, w_up, w_down)
    return 0.9 * out + 0.1 * out.roll(-1, dims=-2)
