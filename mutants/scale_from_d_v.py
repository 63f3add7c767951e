"""Divides the scores by the root of the values' width.

Right as long as values are as wide as keys.
"""

from mutants.parts import hide, mix, scores

MUST_BREAK = ("scale.default-is-one-over-root-d-k",)
SPREADS = ("attention",)


def attention(q, k, v, *, causal=False, scale=None):
    scale = v.shape[-1] ** -0.5 if scale is None else scale
    return mix(hide(scores(q, k, scale), causal), q, v)
