"""Multiplies by the gain's size: a negative gain comes out positive.

Gains start at 1, and in a trained model some are below 0.
"""

import refimpl

MUST_BREAK = ("norm.formula", "norm.zero-stays-zero")
SPREADS = ("contract",)


def rms_norm(x, weight, *, eps=1e-6):
    return refimpl.rms_norm(x, weight.abs(), eps=eps)
