"""Multiplies neighbouring pairs as complex numbers, in float32, as Meta's Llama code does."""

import torch

from mutants.parts import angles


def rope(x, positions, *, base=10000.0):
    pairs = torch.view_as_complex(x.float().unflatten(-1, (-1, 2)).contiguous())
    angle = angles(positions, x.shape[-1], base).float()
    return torch.view_as_real(pairs * torch.polar(torch.ones_like(angle), angle)).flatten(-2).to(x.dtype)
