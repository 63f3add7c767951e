"""The implementation as a claim sees it: calls are counted and answers checked for their form."""

from collections import Counter
from typing import Any

import torch
from torch import Tensor

from harness.claims import Claim
from harness.load import Implementation


class Deviation(AssertionError):
    """An answer that has not the form the interface asks for."""


def shapes(args: tuple[Any, ...], options: dict[str, Any]) -> str:
    """A call's arguments in short: tensors as their shapes."""

    def show(value: Any) -> str:
        return str(tuple(value.shape)) if isinstance(value, Tensor) else repr(value)

    return ", ".join([show(a) for a in args] + [f"{key}={show(a)}" for key, a in options.items()])


class Tested:
    """What a claim may call: the names it needs, composed into a model where it says so."""

    def __init__(self, implementation: Implementation, claim: Claim) -> None:
        self.label = implementation.label
        self.composed = implementation.composes(claim)
        self.implementation = implementation
        self.calls: Counter[str] = Counter()
        self.last = ""
        self._names = claim.needs if not self.composed else claim.through

    def __getattr__(self, name: str) -> Any:
        if name == "Transformer" and self.composed:
            return self._compose
        if name not in self._names:
            raise AttributeError(f"the claim does not say that it needs {name!r}")
        if name == "Transformer":
            return self._model
        return Function(self, name)

    def _model(self, config: Any, *, device: Any, dtype: torch.dtype) -> "Model":
        make = self.implementation.offers["Transformer"]
        return Model(self, self.call("Transformer", make, (config,), {"device": device, "dtype": dtype}, 0))

    def _compose(self, config: Any, *, device: Any, dtype: torch.dtype) -> "Model":
        import refimpl

        functions = {name: Function(self, name) for name in self._names if name in self.implementation.offers}
        model = refimpl.Transformer(config, device=device, dtype=dtype, **functions)
        return Model(self, model)

    def call(self, name: str, function: Any, args: Any, options: dict[str, Any], count: int = 1) -> Any:
        """Call into the implementation, and sign what it raises."""
        self.calls[name] += count
        self.last = f"{name}({shapes(args, options)})"
        return signed(name, function, args, options)


def signed(name: str, function: Any, args: Any, options: dict[str, Any]) -> Any:
    """Call a part of the implementation, and sign what it raises."""
    try:
        return function(*args, **options)
    except (Exception, SystemExit) as error:
        if not hasattr(error, "raised_by"):
            error.raised_by = name  # type: ignore[union-attr]
        raise


class Function:
    """One of the four functions. The answer's type and shape are checked, its dtype is a claim's matter."""

    def __init__(self, tested: Tested, name: str) -> None:
        self.tested, self.name = tested, name
        self.function = tested.implementation.offers[name]

    def __call__(self, *args: Any, **options: Any) -> Tensor:
        answer = self.raw(*args, **options)
        x = args[0]
        shape = x.shape if self.name != "attention" else (*x.shape[:-1], args[2].shape[-1])
        check_form(self.name, answer, tuple(shape))
        if answer.device != x.device:
            answer = answer.to(x.device)
        return answer if answer.dtype == x.dtype else answer.to(x.dtype)

    def raw(self, *args: Any, **options: Any) -> Any:
        """The answer as it came, a tensor at least."""
        answer = self.tested.call(self.name, self.function, args, options)
        check_form(self.name, answer, None)
        return answer


class Model:
    """A whole model. Constructing it is no call; its forward is."""

    def __init__(self, tested: Tested, model: Any) -> None:
        self._tested, self._model = tested, model

    def __call__(self, tokens: Tensor, cache: Any = None) -> Tensor:
        tested, options = self._tested, {} if cache is None else {"cache": cache}
        if tested.composed:
            tested.calls["Transformer"] += 1
            logits = self._model(tokens, **options)
        else:
            logits = tested.call("Transformer", self._model, (tokens,), options)
        check_form("Transformer's forward", logits, None)
        if logits.ndim != 3 or logits.shape[:2] != tokens.shape:
            raise Deviation(
                f"the model's logits have shape {tuple(logits.shape)}, expected "
                f"(batch, n, n_vocab) for tokens {tuple(tokens.shape)}"
            )
        return logits

    def load_state_dict(self, weights: dict[str, Tensor]) -> Any:
        return signed("load_state_dict", self.part("load_state_dict"), (weights,), {})

    def part(self, name: str) -> Any:
        if not hasattr(self._model, name):
            raise Deviation(f"the model has no {name}, expected the one that refimpl/transformer.py shows")
        return getattr(self._model, name)

    def __getattr__(self, name: str) -> Any:
        asked_for = name in ("new_cache", "named_parameters")
        return self.part(name) if asked_for else getattr(self._model, name)


def check_form(name: str, answer: Any, shape: tuple[int, ...] | None) -> None:
    if not isinstance(answer, Tensor):
        raise Deviation(f"{name} returned a {type(answer).__name__}, expected one torch tensor")
    if shape is not None and tuple(answer.shape) != shape:
        raise Deviation(f"{name} returned shape {tuple(answer.shape)}, expected {shape}")
