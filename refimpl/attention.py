"""Attention: softmax(scale * q k^T + mask) v."""

import torch
from torch import Tensor

from refimpl.norm import widen


def attention(q: Tensor, k: Tensor, v: Tensor, *, causal: bool = False, scale: float | None = None) -> Tensor:
    """Each output row is an average of v's rows, weighted by how well its query matches the keys.

    q (batch, n_heads, n_q, d_k), k (batch, n_kv_heads, n_k, d_k), v (batch, n_kv_heads, n_k, d_v)
    -> (batch, n_heads, n_q, d_v), in q's dtype; 16-bit inputs are widened to float32 inside.
    Query head h reads key/value head h // (n_heads // n_kv_heads). scale is 1/sqrt(d_k) unless given.
    causal: query i sees key j iff j <= i + n_k - n_q, so the last query sees every key.
    Raises ValueError when causal rows would see no key (n_q > n_k).
    Source: Vaswani et al. 2017 §3.2; grouped heads: Ainslie et al. 2023.
    """
    group = q.shape[-3] // k.shape[-3]
    k, v = k.repeat_interleave(group, dim=-3), v.repeat_interleave(group, dim=-3)
    scale = q.shape[-1] ** -0.5 if scale is None else scale
    scores = widen(q) * scale @ widen(k).mT  # (batch, n_heads, n_q, n_k)
    if causal:
        scores = scores.masked_fill(hidden(q.shape[-2], k.shape[-2], q.device), -torch.inf)
    return (scores.softmax(dim=-1) @ widen(v)).to(q.dtype)  # (batch, n_heads, n_q, d_v)


def hidden(n_q: int, n_k: int, device: torch.device) -> Tensor:
    """The future, as a boolean mask (n_q, n_k) aligned at the last key."""
    if n_q > n_k:
        raise ValueError(f"causal attention needs n_q <= n_k, not {n_q} queries over {n_k} keys")
    here = torch.arange(n_k - n_q, n_k, device=device)  # the key that each query stands at
    return torch.arange(n_k, device=device) > here[:, None]
