"""Instruments: FLOPs, parameters and bytes, read off a running implementation."""

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor


def flops(call: Callable[[], Any]) -> int:
    """FLOPs of the matrix multiplies in a call. Raises "not offered" where none can be seen."""
    return sum(flops_by_kind(call).values())


def flops_by_kind(call: Callable[[], Any]) -> dict[str, int]:
    """FLOPs by operator: "mm" for projections, "bmm" for scores and averages over heads.

    On the CPU the counter sees nothing inside a fused kernel, so count on "meta".
    """
    from torch.utils.flop_counter import FlopCounterMode  # slow to import

    with FlopCounterMode(display=False) as counter:
        call()
    counts = {str(op).split(".")[-1]: n for op, n in counter.get_flop_counts()["Global"].items()}
    if not sum(counts.values()):
        raise NotImplementedError("not offered: its FLOPs cannot be counted on meta")
    return counts


def parameters(model: Any) -> dict[str, Tensor]:
    """A model's parameters by name, each once even if tied."""
    return {name.removeprefix("_model."): p for name, p in model.named_parameters()}


def n_parameters(model: Any) -> int:
    return sum(p.numel() for p in parameters(model).values())


def saved(call: Callable[[], Any]) -> list[Tensor]:
    """The tensors that autograd keeps for the backward pass of a call, each storage once."""
    kept: dict[int, Tensor] = {}

    def pack(x: Tensor) -> Tensor:
        kept[x.untyped_storage().data_ptr() or id(x)] = x
        return x

    with torch.autograd.graph.saved_tensors_hooks(pack, lambda x: x):
        call()
    return list(kept.values())
