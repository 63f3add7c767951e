"""Turns by the row's number, whatever position was given for it.

Where: NVIDIA-NeMo/Automodel PR 2377; Blaizzy/mlx-vlm 1983 (every decoded token at position 0);
pytorch/executorch PR 2010; keras-team/keras-hub PR 1544. Prefill from 0 is right.
"""

import torch

from mutants.parts import angles, turn

MUST_BREAK = ("rope.own-position", "rope.offset-matters")
SPREADS = ("context", "generation")


def rope(x, positions, *, base=10000.0):
    rows = torch.arange(x.shape[-2], device=x.device)
    return turn(x, angles(rows, x.shape[-1], base))
