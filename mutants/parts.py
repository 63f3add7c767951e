"""Attention and RoPE in pieces, so that a mutant spells out only what it does wrong."""

import torch
from torch import Tensor

from refimpl.attention import hidden
from refimpl.norm import widen
from refimpl.rope import angles

__all__ = ["angles", "hide", "mix", "scores", "spread", "turn", "widen"]


def spread(k: Tensor, q: Tensor) -> Tensor:
    """Key/value heads repeated, so that each query head has its own."""
    return widen(k).repeat_interleave(q.shape[1] // k.shape[1], dim=1)


def scores(q: Tensor, k: Tensor, scale: float | None) -> Tensor:
    """(batch, n_heads, n_q, n_k)"""
    return widen(q) @ spread(k, q).mT * (q.shape[-1] ** -0.5 if scale is None else scale)


def hide(s: Tensor, causal: bool, fill: float = -torch.inf) -> Tensor:
    """The future filled with -inf, aligned at the last key."""
    return s.masked_fill(hidden(*s.shape[-2:], s.device), fill) if causal else s


def mix(s: Tensor, q: Tensor, v: Tensor) -> Tensor:
    """softmax(s) v, in q's dtype."""
    return (s.softmax(dim=-1) @ spread(v, q)).to(q.dtype)


def turn(x: Tensor, angle: Tensor) -> Tensor:
    """Each pair (j, j + d/2) turned by its angle (n, d/2), in x's dtype."""
    cos, sin = angle.cos().to(widen(x).dtype), angle.sin().to(widen(x).dtype)
    a, b = widen(x).chunk(2, dim=-1)
    return torch.cat((a * cos - b * sin, a * sin + b * cos), dim=-1).to(x.dtype)
