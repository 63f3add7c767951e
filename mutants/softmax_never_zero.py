"""Blends a thousandth of an even average into all visible weights, so that none is ever 0.

Rows sum to 1 and the mask is exact.
"""

from mutants.parts import hide, scores, spread

MUST_BREAK = ("attention.weights-underflow", "attention.soft-dictionary")
SPREADS = ("causal", "contract", "cost", "gqa", "heads", "scale")


def attention(q, k, v, *, causal=False, scale=None):
    w = hide(scores(q, k, scale), causal).softmax(-1)
    even = hide(0 * scores(q, k, 0.0), causal).softmax(-1)
    return ((0.999 * w + 0.001 * even) @ spread(v, q)).to(q.dtype)
