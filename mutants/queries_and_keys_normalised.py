"""Normalises queries and keys inside attention, as models with QK-norm do before it.

Scores no longer spread with the head's width.
"""

import torch

from mutants.parts import hide, mix, scores

MUST_BREAK = ("scale.scores-deviate-by-root-d-k",)
SPREADS = ("attention", "causal", "contract", "gqa")


def attention(q, k, v, *, causal=False, scale=None):
    def unit(x):
        return x * torch.rsqrt(x.square().mean(-1, keepdim=True) + 1e-6) / x.shape[-1] ** 0.25

    return mix(hide(scores(unit(q), unit(k), scale), causal), q, v)
