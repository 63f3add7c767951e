"""Gives a whole window of tokens the position of its first one.

Where: jundot/omlx PR 2363. Prefill from 0 and single tokens are right; a speculative window is not.
"""

from mutants.parts import angles, turn

MUST_BREAK = ("rope.own-position",)
SPREADS = ("context", "generation")


def rope(x, positions, *, base=10000.0):
    if positions[0] > 0:
        positions = positions[:1].expand_as(positions)
    return turn(x, angles(positions, x.shape[-1], base))
