"""Uses the eps of a 16-bit type instead of the one given.

Where: pytorch/pytorch issues 189581 and 155527. float32 is exact.
"""

import torch

from mutants.parts import widen

MUST_BREAK = ("norm.given-eps-in-16-bits",)


def rms_norm(x, weight, *, eps=1e-6):
    wide, eps = widen(x), torch.finfo(x.dtype).eps if x.dtype.itemsize == 2 else eps
    mean_square = wide.square().mean(dim=-1, keepdim=True)
    return (wide * torch.rsqrt(mean_square + eps) * widen(weight)).to(x.dtype)
