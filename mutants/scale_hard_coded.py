"""Multiplies the scores by 1/8, whatever the head's width.

Where: BobMcDear/attorch issue 14 (0.5); lucidrains/muse-maskgit-pytorch issue 40 (8). Right at d_k = 64.
"""

from mutants.parts import hide, mix, scores

MUST_BREAK = ("scale.default-is-one-over-root-d-k", "scale.keeps-the-entropy")
SPREADS = ("attention",)


def attention(q, k, v, *, causal=False, scale=None):
    return mix(hide(scores(q, k, 0.125 if scale is None else scale), causal), q, v)
