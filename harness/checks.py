"""Comparisons that say what was measured, what was expected, and keep both for the verdict."""

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor


@dataclass
class Figure:
    """What one comparison saw. strain is the error over what is allowed: above 1 it fails."""

    what: str
    measured: Any
    expected: Any
    strain: float


class Breaks(AssertionError):
    """A comparison that failed."""

    def __init__(self, figure: Figure) -> None:
        super().__init__(f"{figure.what}: measured {figure.measured}, expected {figure.expected}")
        self.figure = figure


seen: list[Figure] = []  # the comparisons of the running case; the plugin empties it before each


def judge(ok: bool, what: str, measured: Any, expected: Any, strain: float = 0.0) -> None:
    strain = strain if math.isfinite(strain) else 1e12
    figure = Figure(what, measured, expected, strain)
    seen.append(figure)
    if not ok:
        raise Breaks(figure)


def show(value: Any, digits: int = 6) -> Any:
    """A figure short enough to read, and such that JSON has it: number, text, or None."""
    if isinstance(value, Tensor):
        value = value.item() if value.numel() == 1 else value.tolist()
    if isinstance(value, float):
        return float(f"{value:.{digits}g}") if math.isfinite(value) else str(value)
    return value if isinstance(value, (int, str, bool, type(None))) else str(value)


def exact64(x: Any) -> Tensor:
    """On the CPU first, then in float64: never both in one call."""
    if not isinstance(x, Tensor):
        return torch.tensor(x, dtype=torch.float64)
    return x.detach().cpu().to(torch.float64)


def close(measured: Any, expected: Any, within: Any, what: str) -> None:
    """|measured - expected| <= within, everywhere; NaN fails. Shows the worst element."""
    __tracebackhide__ = True
    a, b, bound = exact64(measured), exact64(expected), exact64(within)
    if a.shape != b.shape and b.ndim:
        judge(False, f"{what} (shape)", tuple(a.shape), tuple(b.shape))
    b, bound = b.expand_as(a), bound.expand_as(a)
    error = (a - b).abs()
    error = torch.where(a == b, 0.0, error)  # two equal infinities agree
    error = torch.where(error.isnan(), torch.inf, error)
    if not a.numel():
        judge(False, f"{what} (number of values)", 0, "at least 1")
    strain = torch.where(error <= bound, error / bound.clamp(min=1e-300), error / bound.clamp(min=1e-300) + 1)
    at = int(strain.argmax())
    ok = bool((error <= bound).all())
    where = "" if a.ndim == 0 or a.numel() == 1 else f" at {list(index(at, a.shape))}"
    value, center, width = (float(x.flatten()[at]) for x in (a, b, bound))
    center = 0.0 if abs(center) < width / 100 else center
    digits = resolving(max(abs(value), abs(center)), width)
    limit = f"{show(center, digits)} within {width:.2g}"
    judge(ok, what + where, show(value, digits), limit, float(strain.flatten()[at]))


def resolving(size: float, width: float) -> int:
    """Significant digits, at least 6, in which a difference of `width` shows in numbers of `size`."""
    if not (0 < width < size < math.inf):
        return 6
    return min(17, max(6, 2 + math.ceil(math.log10(size / width))))


def index(flat: int, shape: torch.Size) -> tuple[int, ...]:
    return tuple(int(i) for i in np.unravel_index(flat, shape))


def same(measured: Any, expected: Any, what: str) -> None:
    """Exactly equal: tensors bit for bit, anything else by ==."""
    __tracebackhide__ = True
    if isinstance(measured, Tensor) and isinstance(expected, Tensor):
        if measured.shape == expected.shape and torch.equal(measured, expected):
            judge(True, what, "equal", "equal bit for bit")
            return
        if measured.shape == expected.shape:
            gap = (exact64(measured) - exact64(expected)).abs().max()
            judge(False, what, f"a difference of {float(gap):.2g}", "equal bit for bit", 2.0)
        judge(False, f"{what} (shape)", tuple(measured.shape), tuple(expected.shape), 2.0)
    ok = bool(measured == expected)
    judge(ok, what, show(measured), show(expected), 0.0 if ok else 2.0)


def between(measured: Any, low: float, high: float, what: str) -> None:
    """low <= measured <= high; NaN fails."""
    __tracebackhide__ = True
    value, middle, half = float(measured), (low + high) / 2, (high - low) / 2
    strain = abs(value - middle) / half if half else float(value != middle)
    judge(low <= value <= high, what, show(value), f"{low:.6g} to {high:.6g}", strain)


def at_most(measured: Any, bound: float, what: str) -> None:
    """measured <= bound, everywhere; NaN fails."""
    __tracebackhide__ = True
    values = exact64(measured)
    worst = float(values.max()) if not bool(values.isnan().any()) else float("nan")
    strain = worst / bound if bound > 0 else float(worst > bound)
    judge(worst <= bound, what, show(worst), f"at most {bound:.6g}", strain)


def at_least(measured: Any, bound: float, what: str) -> None:
    """measured >= bound, everywhere; NaN fails."""
    __tracebackhide__ = True
    values = exact64(measured)
    worst = float(values.min()) if not bool(values.isnan().any()) else float("nan")
    strain = bound / worst if worst > 0 else float(worst < bound) * 2
    judge(worst >= bound, what, show(worst), f"at least {bound:.6g}", strain)


def gradients(output: Tensor, *inputs: Tensor, along: Tensor | None = None) -> tuple[Tensor, ...]:
    """d (output . along) / d inputs; along is ones by default. Breaks where no gradient is carried."""
    __tracebackhide__ = True
    judge(output.requires_grad, "the output's gradient", "none", "one for every input")
    along = torch.ones_like(output) if along is None else along
    judge(output.shape == along.shape, "the output's shape", tuple(output.shape), tuple(along.shape))
    found = torch.autograd.grad(output, inputs, grad_outputs=along, allow_unused=True)
    for i, grad in enumerate(found):
        judge(grad is not None, f"the gradient of input {i}", "none", "one for every input")
    return found
