"""Looks positions up in a table of 2,048 rows; later ones get the last row.

Where: microsoft/onnxruntime 28205; vllm-project/vllm-ascend PR 1266. Past the table scores are constant, so
that tests of invariance pass there.
"""

from mutants.parts import angles, turn

MUST_BREAK = ("rope.offset-matters", "rope.angle-proportional", "context.formula-everywhere")


def rope(x, positions, *, base=10000.0):
    return turn(x, angles(positions.clamp(max=2047), x.shape[-1], base))
