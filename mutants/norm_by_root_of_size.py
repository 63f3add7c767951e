"""Divides by the root of the size, not by the size: what comes out still tells how much went in.

One root too many in a fused kernel. It offers the FFN too, so that the two can be judged together.
"""

import torch

from mutants.parts import widen
from refimpl import feed_forward

__all__ = ["feed_forward", "rms_norm"]

MUST_BREAK = ("ffn.amount-hidden-by-norm", "norm.output-has-unit-size")
SPREADS = ("contract", "lm-head")


def rms_norm(x, weight, *, eps=1e-6):
    wide = widen(x)
    mean_square = wide.square().mean(dim=-1, keepdim=True)
    return (wide * torch.rsqrt((mean_square + eps).sqrt()) * widen(weight)).to(x.dtype)
