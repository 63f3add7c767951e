"""Slows planes of long wavelength eightfold, as Llama 3.1 asks for, where nobody asked.

Where: felafax/felafax 59; lablup/mlxcel 1355; unslothai/unsloth PR 6197. Fast planes are right, so that short
prompts are too.
"""

import math

import torch

from mutants.parts import angles, turn

MUST_BREAK = ("rope.rates-geometric", "rope.rates")
SPREADS = ("context",)


def rope(x, positions, *, base=10000.0):
    angle, rate = angles(positions, x.shape[-1], base), angles(positions[:1] * 0 + 1, x.shape[-1], base)
    return turn(x, torch.where(2 * math.pi / rate > 8192, angle / 8, angle))
