"""Keeps its angles from the first call of each length, whatever positions and base come later.

Where: rotary-embedding-torch 0.9.1 keeps the angles of a bfloat16 call for later float32 ones; lengths as the
only key are seen in teaching code.
"""

from mutants.parts import angles, turn

MUST_BREAK = ("contract.rope-remembers-nothing",)
SPREADS = ("context", "generation", "rope")

TABLES = {}


def rope(x, positions, *, base=10000.0):
    key = (x.shape[-1], len(positions), str(x.device))
    if key not in TABLES:
        TABLES[key] = angles(positions, x.shape[-1], base)
    return turn(x, TABLES[key])
