"""Takes eps and drops it: a row of zeros becomes NaN.

Where: NVIDIA/apex PR 1295 (the discussion of why eps is there).
"""

import torch

from mutants.parts import widen

MUST_BREAK = ("norm.zero-stays-zero", "norm.eps-is-added-under-the-root")
SPREADS = ("contract",)


def rms_norm(x, weight, *, eps=1e-6):
    wide = widen(x)
    return (wide * torch.rsqrt(wide.square().mean(dim=-1, keepdim=True)) * widen(weight)).to(x.dtype)
