"""Takes positions for a run, counting up from the first, where the last is as far on as a run's would be.

Runs are right, and so are gaps that widen the span; tokens swapped between the ends are not.
"""

import torch

import refimpl

MUST_BREAK = ("rope.own-position",)


def rope(x, positions, *, base=10000.0):
    n = len(positions)
    if n > 1 and float(positions[-1] - positions[0]) == n - 1:
        positions = positions[0] + torch.arange(n, device=positions.device)
    return refimpl.rope(x, positions, base=base)
