"""Starts the exponents one plane too early: the fastest plane turns by more than a radian a position.

Where: bkitano/llama-from-scratch 8. Every claim about offsets holds.
"""

from mutants.parts import angles, turn

MUST_BREAK = ("rope.fastest-turns-a-radian",)
SPREADS = ("context",)


def rope(x, positions, *, base=10000.0):
    return turn(x, base ** (2 / x.shape[-1]) * angles(positions, x.shape[-1], base))
