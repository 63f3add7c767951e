"""Doubles the exponents, base^(-4p/d): a wrong reading of i as the plane's number; the rates end at base^-2.

Where: lucidrains/RETRO-pytorch 12 (d halved twice). Every claim about offsets holds.
"""

from mutants.parts import angles, turn

MUST_BREAK = ("rope.base-sets-the-slowest", "rope.rates")
SPREADS = ("context",)


def rope(x, positions, *, base=10000.0):
    return turn(x, angles(positions, x.shape[-1], base**2))
