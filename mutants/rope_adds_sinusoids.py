"""Adds the 2017 sinusoids to queries and keys in place of turning them.

Where: the design of Vaswani et al. 2017, moved below the projections.
"""

import torch

from mutants.parts import angles, widen

MUST_BREAK = ("rope.linear", "rope.position-zero", "rope.keeps-length")
SPREADS = ("context", "contract")


def rope(x, positions, *, base=10000.0):
    angle = angles(positions, x.shape[-1], base)
    return (widen(x) + torch.cat((angle.sin(), angle.cos()), dim=-1).to(widen(x).dtype)).to(x.dtype)
