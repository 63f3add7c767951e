"""The error budget: how far a correct implementation may stray from the exact answer.

Three computations of one quantity: exact (the formula in float64), plain (the same formula on the CPU,
with inputs and outputs in the tested dtype and float32 inside), and tested. A correct implementation
errs about as much as the plain formula does, so the bound is a small multiple of the plain formula's
own error, with a floor of one rounding per square root of the sum's length. For float64 the plain
formula runs in float32 and its error is scaled by the ratio of the two epsilons.
"""

import math
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from harness.checks import close, exact64

MULTIPLE = 4.0


def bound(
    exact: Tensor, plain: Tensor, dtype: torch.dtype, *, terms: int, size: float | None = None
) -> float:
    """The allowed error for values of about `size` (by default exact's largest) summed over `terms`."""
    eps = torch.finfo(dtype).eps
    own = float((exact64(plain) - exact).abs().max())
    if dtype == torch.float64:
        own *= eps / torch.finfo(torch.float32).eps
    size = float(exact.abs().max()) if size is None else size
    allowed = MULTIPLE * own + eps * math.sqrt(terms) * size
    if not math.isfinite(allowed):
        raise ValueError(f"the plain formula is not finite here, so there is no bound: {own}")
    return allowed


def agrees(
    tested: Callable[..., Any],
    formula: Callable[..., Tensor],
    *inputs: Any,
    what: str,
    quantity: Callable[..., Tensor] | None = None,
    terms: int | None = None,
    size: float | None = None,
    **options: Any,
) -> Tensor:
    """The tested function and the formula agree on a quantity, to rounding; returns the tested one.

    quantity(f, *inputs, **options) is computed with f the formula and with f the tested function; by
    default it is f's output itself. terms is the length of the longest sum, by default the largest
    dimension of any input. Where the exact quantity is a difference near zero, size says how large the
    numbers are that it is the difference of.
    """
    __tracebackhide__ = True
    take = quantity or (lambda f, *a, **o: f(*a, **o))
    dtype = next(x.dtype for x in inputs if is_float(x))
    here = [x.detach().cpu() if isinstance(x, Tensor) else x for x in inputs]

    def plainly(*args: Any, **o: Any) -> Tensor:
        return formula(*(x.to(torch.float32) if is_float(x) else x for x in args), **o).to(
            torch.float32 if dtype == torch.float64 else dtype
        )

    exact = take(formula, *(x.to(torch.float64) if is_float(x) else x for x in here), **options)
    rounded = [x.to(torch.float32) if is_float(x) and dtype == torch.float64 else x for x in here]
    plain = take(plainly, *rounded, **options)
    terms = terms or max(max(x.shape, default=1) for x in here if is_float(x))
    measured = take(tested, *inputs, **options)
    close(measured, exact, bound(exact, plain, dtype, terms=terms, size=size), what)
    return measured


def is_float(x: Any) -> bool:
    return isinstance(x, Tensor) and x.is_floating_point()
