"""Divides rows with a huge entry by that entry, against overflow, and adds eps to what is left.

There eps counts for the square of that entry more than it should.
"""

import torch

from mutants.parts import widen

MUST_BREAK = ("norm.eps-is-added-under-the-root",)


def rms_norm(x, weight, *, eps=1e-6):
    wide = widen(x)
    largest = wide.abs().amax(dim=-1, keepdim=True)
    wide = torch.where(largest > 1000, wide / largest, wide)
    mean_square = wide.square().mean(dim=-1, keepdim=True)
    return (wide * torch.rsqrt(mean_square + eps) * widen(weight)).to(x.dtype)
