"""Keeps its rates in a bfloat16 buffer, and multiplies positions in float32.

Where: huggingface/transformers 25681 and PR 29285 (the buffer is cast along with the model). Scores still
depend only on the offset: the rates are wrong ones, but every position has the same.
"""

import torch

from mutants.parts import angles, turn

MUST_BREAK = ("rope.rates-geometric", "rope.rates")
SPREADS = ("context",)


def rope(x, positions, *, base=10000.0):
    rates = angles(torch.ones(1, device=x.device), x.shape[-1], base).to(torch.bfloat16).float()
    return turn(x, positions[:, None] * rates)
