"""Forgets to divide the scores by sqrt(d_k).

The commonest slip of a first implementation; training still works, only worse.
"""

from mutants.parts import hide, mix, scores

MUST_BREAK = (
    "scale.default-is-one-over-root-d-k",
    "scale.keeps-the-entropy",
    "scale.turns-a-winner-into-a-blend",
)
SPREADS = ("attention",)


def attention(q, k, v, *, causal=False, scale=None):
    return mix(hide(scores(q, k, 1.0 if scale is None else scale), causal), q, v)
