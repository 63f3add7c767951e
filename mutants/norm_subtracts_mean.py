"""LayerNorm's mean subtraction in RMSNorm.

Where: ggml-org/llama.cpp issue 173; rustformers/llm issue 80. Rows without a mean agree.
"""

import torch

from mutants.parts import widen

MUST_BREAK = ("norm.keeps-the-mean", "norm.formula")
SPREADS = ("contract",)


def rms_norm(x, weight, *, eps=1e-6):
    wide = widen(x) - widen(x).mean(dim=-1, keepdim=True)
    mean_square = wide.square().mean(dim=-1, keepdim=True)
    return (wide * torch.rsqrt(mean_square + eps) * widen(weight)).to(x.dtype)
