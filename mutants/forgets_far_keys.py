"""Silently drops all but the last 2,048 keys, as a window that nobody asked for.

Short inputs cannot show it; the FLOPs of long ones stop growing with the square.
"""

import refimpl

MUST_BREAK = ("cost.scores-grow-with-the-square",)
SPREADS = ("attention",)


def attention(q, k, v, *, causal=False, scale=None):
    if not causal:
        k, v = k[..., -2048:, :], v[..., -2048:, :]
    return refimpl.attention(q, k, v, causal=causal, scale=scale)
