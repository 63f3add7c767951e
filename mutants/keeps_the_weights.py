"""Keeps the last call's attention weights for a viewer that is never opened.

The answers are right; a grid of n_heads n^2 numbers stays in memory, for each layer that calls it.
"""

from mutants.parts import hide, scores, spread

MUST_BREAK = ("cost.scores-are-scratch",)

shown = {}


def attention(q, k, v, *, causal=False, scale=None):
    shown["weights"] = hide(scores(q, k, scale), causal).softmax(dim=-1)
    return (shown["weights"] @ spread(v, q)).to(q.dtype)
