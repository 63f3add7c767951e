"""Reads the integer positions' bits as float64: every angle is a denormal, and nothing turns.

Where: the refresher's §15 (int64 to float64 on MPS); pytorch/pytorch 197715. Every test that only asks
whether the score is the same at the same offset passes.
"""

import torch

from mutants.parts import angles, turn

MUST_BREAK = (
    "rope.offset-matters",
    "rope.injects-order",
    "rope.angles-pin-the-offset",
    "rope.blocks-absorption",
)
SPREADS = ("context",)


def rope(x, positions, *, base=10000.0):
    bits = positions.view(torch.float64) if positions.dtype == torch.int64 else 0 * positions
    return turn(x, angles(bits, x.shape[-1], base))
