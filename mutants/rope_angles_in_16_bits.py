"""Forms the angles in the vectors' dtype: rates and their products with positions are rounded to it.

Where: EleutherAI/gpt-neox 1003; huggingface/transformers 25681, 29496; vllm-project/vllm 863. The frequency
buffer is cast along with the model. In float32 nothing is wrong.
"""

import torch

from mutants.parts import angles, turn

MUST_BREAK = ("rope.angles-wider-than-16-bits",)


def rope(x, positions, *, base=10000.0):
    rates = angles(torch.ones(1, device=x.device), x.shape[-1], base).to(x.dtype)
    return turn(x, (positions.to(x.dtype)[:, None] * rates).float())
