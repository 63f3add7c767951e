"""Divides by the vector's length: the mean is forgotten, and outputs are smaller by sqrt(d).

Where: kyegomez/zeta issue 180.
"""

import torch

from mutants.parts import widen

MUST_BREAK = ("norm.output-has-unit-size", "norm.formula")
SPREADS = ("contract",)


def rms_norm(x, weight, *, eps=1e-6):
    wide = widen(x)
    mean_square = wide.square().sum(dim=-1, keepdim=True)
    return (wide * torch.rsqrt(mean_square + eps) * widen(weight)).to(x.dtype)
