"""Forms its angles in float32, with rates as exponentials: usual, and off by 1e-4 rad at position 4,096."""

import math

import torch

from mutants.parts import turn


def rope(x, positions, *, base=10000.0):
    exponents = torch.arange(0, x.shape[-1], 2, device=x.device).float() / x.shape[-1]
    rates = (-math.log(base) * exponents).exp()
    return turn(x, positions.float()[:, None] * rates)
