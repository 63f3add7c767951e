"""Computes as many columns of the output as keys are wide, and leaves the rest at 0.

d_v <= d_k is right. Seen: pytorch/pytorch 176767 (MPS); lucidrains/flash-attention-jax PR 15.
"""

import torch

from mutants.parts import hide, mix, scores

MUST_BREAK = ("attention.value-width-is-free", "attention.formula")
SPREADS = ("gqa",)


def attention(q, k, v, *, causal=False, scale=None):
    d_k, d_v = q.shape[-1], v.shape[-1]
    out = mix(hide(scores(q, k, scale), causal), q, v[..., :d_k])
    return torch.nn.functional.pad(out, (0, max(0, d_v - d_k)))
