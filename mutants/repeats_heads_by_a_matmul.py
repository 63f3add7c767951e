"""Gives each query head its keys and values by a product with a matrix of zeros and ones.

The answers are right; the FLOPs are not those of attention.
"""

import torch

import refimpl

MUST_BREAK = ("cost.gqa-scores-stay", "cost.score-flops-ignore-heads")
SPREADS = ("training",)


def attention(q, k, v, *, causal=False, scale=None):
    group = q.shape[1] // k.shape[1]
    copies = torch.eye(k.shape[1], dtype=k.dtype, device=k.device).repeat_interleave(group, 0)
    k, v = (torch.einsum("hg,bgnd->bhnd", copies, x) for x in (k, v))
    return refimpl.attention(q, k, v, causal=causal, scale=scale)
