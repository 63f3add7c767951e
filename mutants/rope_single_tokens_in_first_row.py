"""Turns single tokens in the first row of a batch only.

Where: ml-explore/mlx 3494, 3795, 3949; oxiglade/mlx-rs 359 (a fast path launched without the batch axis).
Prefill, and a batch of one, are right.
"""

import torch

from mutants.parts import angles, turn

MUST_BREAK = ("contract.rope-keeps-rows-apart",)
SPREADS = ("context", "generation", "rope")


def rope(x, positions, *, base=10000.0):
    turned = turn(x, angles(positions, x.shape[-1], base))
    return torch.cat((turned[:1], x[1:])) if x.shape[-2] == 1 else turned
