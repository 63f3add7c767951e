"""Keeps one table for each first and last position, whatever lies between them.

Runs of positions have nothing else between; packed or reordered tokens do.
"""

from mutants.parts import angles, turn

MUST_BREAK = ("contract.rope-remembers-nothing",)
SPREADS = ("rope",)

TABLES = {}


def rope(x, positions, *, base=10000.0):
    key = (*positions[[0, -1]].tolist(), len(positions), x.shape[-1], base, str(x.device))
    if key not in TABLES:
        TABLES[key] = angles(positions, x.shape[-1], base)
    return turn(x, TABLES[key])
