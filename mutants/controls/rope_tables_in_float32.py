"""Forms angles in float64 and keeps cosines and sines in float32, as the refresher's code does."""

import torch

from mutants.parts import angles


def rope(x, positions, *, base=10000.0):
    angle = angles(positions, x.shape[-1], base)
    cos, sin = (t.float().to(x.dtype) for t in (angle.cos(), angle.sin()))
    a, b = x.chunk(2, dim=-1)
    return torch.cat((a * cos - b * sin, a * sin + b * cos), dim=-1)
