"""Adds 1 to all visible scores, as a mask of ones does.

A softmax sees only differences, so a constant a row cancels. Seen: tinygrad/tinygrad PR 2425.
"""

from mutants.parts import hide, mix, scores


def attention(q, k, v, *, causal=False, scale=None):
    return mix(hide(scores(q, k, scale) + 1, causal), q, v)
