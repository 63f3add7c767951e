"""RMSNorm: divide by the root mean square, multiply by a gain."""

import torch
from torch import Tensor


def rms_norm(x: Tensor, weight: Tensor, *, eps: float = 1e-6) -> Tensor:
    """x / sqrt(mean(x^2) + eps) * weight, over the last dimension.

    x (..., d), weight (d,) -> (..., d), in x's dtype; 16-bit inputs are widened to float32 inside,
    because the square of 300 does not fit float16. Source: Zhang & Sennrich 2019.
    """
    wide = widen(x)
    mean_square = wide.square().mean(dim=-1, keepdim=True)  # (..., 1)
    return (wide * torch.rsqrt(mean_square + eps) * widen(weight)).to(x.dtype)


def widen(x: Tensor) -> Tensor:
    """16-bit numbers as float32; float32 and float64 as they are."""
    return x.float() if x.dtype in (torch.bfloat16, torch.float16) else x
