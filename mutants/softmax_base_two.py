"""Raises 2 instead of e to the scores: log2(e) is missing in front.

Hardware has exp2, and kernels use it. What results is a temperature of 1.44.
"""

import math

from mutants.parts import hide, mix, scores

MUST_BREAK = (
    "scale.two-keys",
    "scale.turns-a-winner-into-a-blend",
    "scale.default-is-one-over-root-d-k",
    "scale.jacobian-is-diag-minus-outer",
)
SPREADS = ("attention", "causal", "contract", "gqa")


def attention(q, k, v, *, causal=False, scale=None):
    return mix(hide(scores(q, k, scale) * math.log(2), causal), q, v)
