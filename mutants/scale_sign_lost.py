"""Puts the root of |scale| on the queries and again on the keys: a negative scale turns positive.

Where: pytorch/pytorch PR 105202 (math path).
"""

from mutants.parts import hide, mix, scores

MUST_BREAK = ("scale.argument-multiplies-scores",)


def attention(q, k, v, *, causal=False, scale=None):
    root = abs(q.shape[-1] ** -0.5 if scale is None else scale) ** 0.5
    return mix(hide(scores(q * root, k * root, 1.0), causal), q, v)
