"""Turns along the axis of heads where there are as many heads as tokens.

Where: mlfoundations/open_lm 4 (models were trained with it); lucidrains/ring-attention-pytorch 15. A
layout of (batch, n, n_heads, d_head) was meant; only equal counts hide it from a check of shapes.
"""

from mutants.parts import angles, turn

MUST_BREAK = ("rope.own-position",)
SPREADS = ("generation", "training")


def rope(x, positions, *, base=10000.0):
    if x.ndim == 4 and x.shape[1] == len(positions):
        return turn(x.transpose(1, 2), angles(positions, x.shape[-1], base)).transpose(1, 2)
    return turn(x, angles(positions, x.shape[-1], base))
