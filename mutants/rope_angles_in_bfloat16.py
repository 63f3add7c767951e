"""Forms the angles in bfloat16, for vectors of any dtype.

Where: EleutherAI/gpt-neox 1003 (cos off by 0.78 at position 1857); NVIDIA/Megatron-LM 744.
"""

import torch

from mutants.parts import angles, turn

MUST_BREAK = ("rope.relative-offset", "context.formula-everywhere", "context.window-anywhere")


def rope(x, positions, *, base=10000.0):
    rates = angles(torch.ones(1, device=x.device), x.shape[-1], base).to(torch.bfloat16)
    return turn(x, (positions.to(torch.bfloat16)[:, None] * rates).float())
