"""Squares in the input's own type: past 256 float16 overflows, and zeros come out.

Where: unslothai/unsloth-zoo PR 600; onnx/onnx issue 8439 (its reference RMSNormalization).
"""

import torch

from mutants.parts import widen

MUST_BREAK = ("norm.squares-fit-float16",)


def rms_norm(x, weight, *, eps=1e-6):
    wide = widen(x)
    mean_square = widen(x * x).mean(dim=-1, keepdim=True)
    return (wide * torch.rsqrt(mean_square + eps) * widen(weight)).to(x.dtype)
