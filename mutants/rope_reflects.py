"""Forgets the minus sign: (a cos + b sin, b cos + a sin), which stretches and is no rotation.

Where: seen in teaching code, where rotate_half loses its sign.
"""

import torch

from mutants.parts import angles, widen

MUST_BREAK = ("rope.keeps-length", "rope.common-turn")
SPREADS = ("context", "contract")


def rope(x, positions, *, base=10000.0):
    angle = angles(positions, x.shape[-1], base)
    a, b = widen(x).chunk(2, dim=-1)
    cos, sin = angle.cos().to(a.dtype), angle.sin().to(a.dtype)
    return torch.cat((a * cos + b * sin, b * cos + a * sin), dim=-1).to(x.dtype)
