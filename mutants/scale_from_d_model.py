"""Divides the scores by the root of the model's width, not the head's.

Where: karpathy/ng-video-lecture PR 6; FrancescoSaverioZuppichini/ViT issue 1. Flat over head widths, so a
test of flatness passes; so does one head.
"""

from mutants.parts import hide, mix, scores

MUST_BREAK = ("scale.default-is-one-over-root-d-k", "scale.keeps-the-entropy")
SPREADS = ("attention",)


def attention(q, k, v, *, causal=False, scale=None):
    scale = (q.shape[-1] * q.shape[1]) ** -0.5 if scale is None else scale
    return mix(hide(scores(q, k, scale), causal), q, v)
