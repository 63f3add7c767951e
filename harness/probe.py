"""Black-box probes: read from outputs alone what happens inside."""

import hashlib
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


def marked(kinds: Tensor, like: Tensor) -> Tensor:
    """Values (1, 1, n_k, 8) that mark each key's kind, kinds (n_k,) from 0 to 7, by a column of its own.

    A column is as large as its keys are rare, so that losing a single key of thousands shows in 16 bits.
    """
    marks = torch.nn.functional.one_hot(kinds, 8).double()
    return (marks * len(kinds) / marks.sum(0).clamp(min=1)).to(like.dtype).to(like.device)[None, None]


def reference(config: ModelConfig, state: dict[str, Tensor], dtype: torch.dtype, **functions: Any) -> Any:
    """The reference with these weights, on the CPU in this dtype, or made of other functions: rope=..."""
    import refimpl

    model = refimpl.Transformer(config, dtype=dtype, **functions)
    model.load_state_dict({name: w.detach().cpu().to(dtype) for name, w in state.items()})
    return model


BOUNDS: dict[tuple[ModelConfig, torch.dtype, bytes], float] = {}


def logits_bound(config: ModelConfig, state: dict[str, Tensor], tokens: Tensor, dtype: torch.dtype) -> float:
    """How far correct logits may stray in this dtype: the reference's own error against float64.

    Every implementation of a run asks for the same bounds, so they are kept by all they follow from.
    """
    digest = hashlib.sha256()
    for name, x in {"tokens": tokens, **state}.items():
        digest.update(f"{name} {tuple(x.shape)} {x.dtype}".encode())
        digest.update(x.detach().cpu().contiguous().view(torch.uint8).numpy().data)
    key = (config, dtype, digest.digest())
    if key in BOUNDS:
        return BOUNDS[key]

    def run(dtype: torch.dtype) -> Tensor:
        with torch.no_grad():
            return reference(config, state, dtype)(tokens.cpu())

    plain = run(torch.float32 if dtype == torch.float64 else dtype)
    BOUNDS[key] = bound(exact64(run(torch.float64)), plain, dtype, terms=config.d_model)
    return BOUNDS[key]


def turning_rates(rope: Callable[..., Tensor], basis: Tensor, *, reach: int = 1024, **options: Any) -> Tensor:
    """How far each dimension turns per position (d_head,), read from turns over 1, 2, 4, ..., reach.

    Sharper than `rates`: an error of e radians in one turn is e / reach here. Each doubling says how many
    whole circles the next turn holds. Turns are measured from wherever position 0 points, so that a shift
    of all positions is no difference; pairing and direction are free. basis is the identity.
    """
    powers = [2**i for i in range(reach.bit_length())]
    positions = torch.tensor([0, *powers], device=basis.device)
    x = basis[:, None, None, :].repeat(1, 1, len(positions), 1)  # (d_head, 1, n, d_head)
    turned = exact64(rope(x, positions, **options))[:, 0]  # (d_head, n, d_head)
    start = turned[:, :1]
    cosine = (turned * start).sum(-1)  # (d_head, n)
    rest = turned - cosine[..., None] * start
    sine = rest.norm(dim=-1)
    # The first turn of some size is under half a circle, so its direction counts as forwards.
    first = torch.where((sine > 0.3).any(-1), (sine > 0.3).int().argmax(-1), len(powers))
    forwards = rest[torch.arange(len(first)), first]  # (d_head, d_head)
    forwards = forwards / forwards.norm(dim=-1, keepdim=True).clamp(min=1e-30)
    angle = torch.atan2((rest * forwards[:, None]).sum(-1), cosine)  # (d_head, n)
    rate = angle[:, 1]
    for i, power in enumerate(powers[1:], start=2):
        circles = ((rate * power - angle[:, i]) / (2 * torch.pi)).round()
        rate = (angle[:, i] + 2 * torch.pi * circles) / power
    return rate


def moved(before: Tensor, after: Tensor, dim: int) -> list[int]:
    """Which indices along a dimension hold a number that changed, be it in the last bit."""
    changed = (before != after).movedim(dim, 0).flatten(1).any(1)
    return [int(i) for i in changed.nonzero().flatten()]
