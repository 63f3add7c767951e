"""RoPE: turn each pair of dimensions by an angle proportional to the position."""

import torch
from torch import Tensor

from refimpl.norm import widen


def rope(x: Tensor, positions: Tensor, *, base: float = 10000.0) -> Tensor:
    """x (batch, n_heads, n, d_head), positions (n,) -> x with row i turned to positions[i].

    Plane j, the dimensions j and j + d_head/2, turns by positions[i] * base^(-2j/d_head).
    Angles are float64 (float32 on MPS, which has no float64), the turn is in float32 or wider.
    Source: Su et al. 2021 (RoFormer); half-split pairs as in Hugging Face's Llama.
    """
    angle = angles(positions, x.shape[-1], base)
    cos, sin = angle.cos().to(widen(x).dtype), angle.sin().to(widen(x).dtype)  # (n, d_head/2)
    a, b = widen(x).chunk(2, dim=-1)
    return torch.cat((a * cos - b * sin, b * cos + a * sin), dim=-1).to(x.dtype)


def angles(positions: Tensor, d_head: int, base: float) -> Tensor:
    """(n,) -> (n, d_head/2), in radians.

    The cast comes after any device move and never in the same call: a combined one has returned the
    integers' bits, and RoPE silently became the identity.
    """
    exact = torch.float32 if positions.device.type == "mps" else torch.float64
    rates = [base ** (-i / d_head) for i in range(0, d_head, 2)]
    return positions.to(exact)[:, None] * torch.tensor(rates, dtype=exact, device=positions.device)
