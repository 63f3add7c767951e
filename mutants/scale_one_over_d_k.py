"""Divides the scores by d_k, without the root.

Weights drift to even as heads widen.
"""

from mutants.parts import hide, mix, scores

MUST_BREAK = ("scale.default-is-one-over-root-d-k", "scale.keeps-the-entropy")
SPREADS = ("attention",)


def attention(q, k, v, *, causal=False, scale=None):
    return mix(hide(scores(q, k, 1 / q.shape[-1] if scale is None else scale), causal), q, v)
