"""Turns all planes at one and the same rate, a radian a position.

Where: the refresher's §14 says what is lost by it. Every claim about offsets alone holds.
"""

from mutants.parts import angles, turn

MUST_BREAK = ("rope.rates-differ", "rope.base-sets-the-slowest", "context.slow-planes-meet-new-angles")


def rope(x, positions, *, base=10000.0):
    angle = angles(positions, x.shape[-1], base)
    return turn(x, angle[:, :1].expand_as(angle))
