"""Aligns the causal mask at the first key instead of the last.

A cached step sees key 0 only. Every square test passes. Seen: pytorch/pytorch 103082, 108108, 144858;
ml-explore/mlx 2835; Dao-AILab/flash-attention 282; the refresher's own code in its section 10.
"""

import torch

from mutants.parts import mix, scores

MUST_BREAK = ("causal.aligned-at-the-end", "causal.never-sees-the-next")
SPREADS = ("generation",)


def attention(q, k, v, *, causal=False, scale=None):
    s = scores(q, k, scale)
    if causal:
        s = s.masked_fill(torch.ones(s.shape[-2:], dtype=torch.bool, device=s.device).triu(1), -torch.inf)
    return mix(s, q, v)
