"""Cuts the fraction off interpolated positions, as an index into a table must.

Where: seen in teaching code that looks cosines up by position.
"""

import torch

from mutants.parts import angles, turn

MUST_BREAK = ("context.fractions-turn-in-proportion",)


def rope(x, positions, *, base=10000.0):
    return turn(x, angles(positions.to(torch.int64), x.shape[-1], base))
