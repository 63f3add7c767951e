"""Divides the sum of squares by a width padded to a power of two.

Where: unslothai/unsloth PR 1867; triton-lang/triton issue 9838 (adapted from LayerNorm). 64 and 128 agree.
"""

import torch

from mutants.parts import widen

MUST_BREAK = ("norm.output-has-unit-size", "norm.formula")
SPREADS = ("contract",)


def rms_norm(x, weight, *, eps=1e-6):
    wide = widen(x)
    padded = 1 << (x.shape[-1] - 1).bit_length()
    mean_square = wide.square().sum(dim=-1, keepdim=True) / padded
    return (wide * torch.rsqrt(mean_square + eps) * widen(weight)).to(x.dtype)
