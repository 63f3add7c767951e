"""Puts every token at twice its position.

Where: lablup/mlxcel 1324 (a scale of 2.0 by default). Every claim about offsets alone holds.
"""

from mutants.parts import angles, turn

MUST_BREAK = ("rope.fastest-turns-a-radian",)
SPREADS = ("context",)


def rope(x, positions, *, base=10000.0):
    return turn(x, 2 * angles(positions, x.shape[-1], base))
