"""Weighs values by their scores as they are, without a softmax.

Linear attention without a normaliser; seen in teaching code.
"""

from mutants.parts import hide, scores, spread

MUST_BREAK = ("attention.weighted-average", "attention.even-without-scores", "attention.row-by-hand")
SPREADS = ("causal", "contract", "gqa", "heads", "scale")


def attention(q, k, v, *, causal=False, scale=None):
    return (hide(scores(q, k, scale), causal, 0.0) @ spread(v, q)).to(q.dtype)
