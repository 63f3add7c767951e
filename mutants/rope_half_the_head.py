"""Turns only the first half of each head and passes the rest through.

Where: vllm-project/vllm PR 41185; huggingface/transformers PR 48652 (another model's partial setting).
Lengths and offsets are right.
"""

import torch

from mutants.parts import angles, turn

MUST_BREAK = ("rope.planes",)
SPREADS = ("context",)


def rope(x, positions, *, base=10000.0):
    half = max(2, x.shape[-1] // 4 * 2)
    turned = turn(x[..., :half], angles(positions, half, base))
    return torch.cat((turned, x[..., half:]), dim=-1)
