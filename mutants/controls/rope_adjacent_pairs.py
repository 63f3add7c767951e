"""Pairs neighbouring dimensions, 2j and 2j + 1, as the RoFormer paper does."""

import torch

from mutants.parts import angles, turn


def rope(x, positions, *, base=10000.0):
    halves = turn(torch.cat((x[..., ::2], x[..., 1::2]), dim=-1), angles(positions, x.shape[-1], base))
    return torch.stack(halves.chunk(2, dim=-1), dim=-1).flatten(-2)
