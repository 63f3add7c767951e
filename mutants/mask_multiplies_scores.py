"""Multiplies scores by a mask of zeros and ones, so that hidden keys keep weight e^0.

Rows sum to 1. Seen: leffff/graphormer-pyg 14; harvard-edge/cs249r_book PR 1785.
"""

from mutants.parts import hide, mix, scores

MUST_BREAK = ("causal.mask-matrix", "causal.row-is-attention-over-its-prefix")
SPREADS = ("attention", "contract", "generation", "gqa", "training")


def attention(q, k, v, *, causal=False, scale=None):
    return mix(hide(scores(q, k, scale), causal, 0.0), q, v)
