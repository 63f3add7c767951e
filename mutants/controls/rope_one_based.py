"""Counts positions from 1: a shift of all positions, which no score can see.

Where: PrimeIntellect-ai/prime-rl PR 3466. Only what fixes position 0 itself breaks: it is not the identity,
and two turns make one shift too many.
"""

from mutants.parts import angles, turn

MAY_BREAK = ("rope.composition", "rope.position-zero")


def rope(x, positions, *, base=10000.0):
    return turn(x, angles(positions + 1, x.shape[-1], base))
