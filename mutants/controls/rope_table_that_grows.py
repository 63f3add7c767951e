"""Keeps tables of cosines and sines by base and width, and extends them when a later position comes."""

import torch

from mutants.parts import angles, turn

TABLES = {}


def table(last, d_head, base, device):
    key = (d_head, base, str(device))
    if key not in TABLES or len(TABLES[key]) <= last:
        TABLES[key] = angles(torch.arange(2 * last + 2, device=device), d_head, base)
    return TABLES[key]


def rope(x, positions, *, base=10000.0):
    if positions.is_floating_point():
        raise NotImplementedError("not offered: positions between the rows of a table")
    return turn(x, table(int(positions.max()), x.shape[-1], base, x.device)[positions])
