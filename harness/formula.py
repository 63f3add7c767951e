"""The plain formulas, each written another way than in refimpl: loops and complex numbers, no kernels.

They stand for the exact answer (in float64) and for the plain one (in float32) of the error budget.
"""

import torch
from torch import Tensor


def attention(q: Tensor, k: Tensor, v: Tensor, *, causal: bool = False, scale: float | None = None) -> Tensor:
    """One query at a time: exponentials of its scores, divided by their sum, weigh the values."""
    n_heads, n_q, n_kv_heads, n_k = q.shape[1], q.shape[2], k.shape[1], k.shape[2]
    scale = q.shape[-1] ** -0.5 if scale is None else scale
    reads = [h // (n_heads // n_kv_heads) for h in range(n_heads)]  # the key/value head of each query head
    k, v, rows = k[:, reads], v[:, reads], []
    for i in range(n_q):
        seen = i + n_k - n_q + 1 if causal else n_k
        scores = scale * (k[:, :, :seen] * q[:, :, i : i + 1]).sum(-1)  # (batch, n_heads, seen)
        weights = (scores - scores.amax(-1, keepdim=True)).exp()[..., None]
        rows.append((weights * v[:, :, :seen]).sum(-2) / weights.sum(-2))
    return torch.stack(rows, dim=-2)


def rope(x: Tensor, positions: Tensor, *, base: float = 10000.0) -> Tensor:
    """Each pair (j, j + d/2) as one complex number, multiplied by e^(i position rate)."""
    planes = torch.complex(*x.chunk(2, dim=-1))  # (..., n, d/2)
    rates = base ** -(torch.arange(0, x.shape[-1], 2, dtype=x.dtype) / x.shape[-1])
    angles = positions.to(x.dtype)[:, None] * rates
    turned = planes * torch.complex(angles.cos(), angles.sin())
    return torch.cat((turned.real, turned.imag), dim=-1)


def rms_norm(x: Tensor, weight: Tensor, *, eps: float = 1e-6) -> Tensor:
    """Divided by the square root of (mean square + eps), times the gain."""
    return x / ((x * x).sum(-1, keepdim=True) / x.shape[-1] + eps).sqrt() * weight


def feed_forward(x: Tensor, w_gate: Tensor, w_up: Tensor, w_down: Tensor) -> Tensor:
    """silu(g) = g / (1 + e^-g), times the up branch, summed over slots."""
    gate = x @ w_gate
    return (gate / (1 + (-gate).exp()) * (x @ w_up)) @ w_down
