"""Multiplies by 1 + gain, the convention of another model family (Gemma).

Where: linkedin/Liger-Kernel issues 74 and 89; huggingface/transformers PR 29402.
"""

import torch

from mutants.parts import widen

MUST_BREAK = ("norm.gain-per-dimension", "norm.formula", "norm.output-has-unit-size")
SPREADS = ("contract", "lm-head")


def rms_norm(x, weight, *, eps=1e-6):
    wide = widen(x)
    mean_square = wide.square().mean(dim=-1, keepdim=True)
    return (wide * torch.rsqrt(mean_square + eps) * (1 + widen(weight))).to(x.dtype)
