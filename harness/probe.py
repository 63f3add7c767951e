"""Black-box probes: read from outputs alone what happens inside."""

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from harness.budget import bound
from harness.checks import exact64
from refimpl.config import ModelConfig


def weights(attention: Callable[..., Tensor], q: Tensor, k: Tensor, **options: Any) -> Tensor:
    """The softmax weights (batch, n_heads, n_q, n_k), read by giving each key a value of its own.

    The identity goes in as values in pieces of width d_k, padded with zeros, so that kernels which
    need d_v = d_k can be read too.
    """
    (n_batch, n_kv_heads, n_k, d_k), pieces = k.shape, []
    eye = torch.eye(n_k, dtype=k.dtype, device=k.device)
    for start in range(0, n_k, d_k):
        piece = eye[:, start : start + d_k]  # (n_k, at most d_k)
        values = torch.zeros(n_k, d_k, dtype=k.dtype, device=k.device)
        values[:, : piece.shape[1]] = piece
        values = values.expand(n_batch, n_kv_heads, n_k, d_k).contiguous()
        pieces.append(attention(q, k, values, **options)[..., : piece.shape[1]])
    return torch.cat(pieces, dim=-1)


def rates(rope: Callable[..., Tensor], basis: Tensor, **options: Any) -> Tensor:
    """How far each dimension's plane turns per position (d_head,), by turning basis vectors once.

    basis is the identity (d_head, d_head) on the tested device and in the tested dtype. Either pairing
    and either direction will do: the cosine stays on a vector's own dimension, the sine leaves it.
    """
    one = torch.ones(1, dtype=torch.int64, device=basis.device)
    turned = exact64(rope(basis[:, None, None, :], one, **options))[:, 0, 0]  # (d_head, d_head)
    cosine = turned.diagonal()
    sine = (turned - torch.diag(cosine)).square().sum(-1).sqrt()
    return torch.atan2(sine, cosine)


def logits_bound(
    config: ModelConfig, state: dict[str, Tensor], tokens: Tensor, dtype: torch.dtype
) -> float:
    """How far correct logits may stray in this dtype: the reference's own error against float64."""
    import refimpl

    def run(dtype: torch.dtype) -> Tensor:
        model = refimpl.Transformer(config, dtype=dtype)
        model.load_state_dict({name: w.cpu().to(dtype) for name, w in state.items()})
        with torch.no_grad():
            return model(tokens.cpu())

    plain = run(torch.float32 if dtype == torch.float64 else dtype)
    return bound(exact64(run(torch.float64)), plain, dtype, terms=config.d_model)
