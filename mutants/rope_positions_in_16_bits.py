"""Casts positions to the vectors' dtype first: in bfloat16, 8190 and 8191 are one position.

Where: keras-team/keras-hub 1494, PRs 1497 and 1508; nkalyanv99/UNI-D2 PR 6; oarriaga/paz PR 415. In float32
nothing is wrong up to 2^24.
"""

from mutants.parts import angles, turn

MUST_BREAK = ("rope.neighbours-apart",)


def rope(x, positions, *, base=10000.0):
    return turn(x, angles(positions.to(x.dtype), x.shape[-1], base))
