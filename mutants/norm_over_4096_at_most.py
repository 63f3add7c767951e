"""Takes the mean square over the first 4,096 columns, one block of a kernel, however wide the row is."""

import torch

from mutants.parts import widen

MUST_BREAK = ("norm.formula",)


def rms_norm(x, weight, *, eps=1e-6):
    wide = widen(x)
    mean_square = wide[..., :4096].square().mean(dim=-1, keepdim=True)
    return (wide * torch.rsqrt(mean_square + eps) * widen(weight)).to(x.dtype)
