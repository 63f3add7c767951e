"""Turns the other way: R(-m) for R(m), for queries and keys alike.

Where: karpathy/nanochat PR 489, where it was reported as a bug and is none.
"""

from mutants.parts import angles, turn


def rope(x, positions, *, base=10000.0):
    return turn(x, -angles(positions, x.shape[-1], base))
