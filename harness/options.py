"""The command line's options, read once: what a run judges, and where."""

import os
import sys
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest
import torch

from harness.configs import read
from harness.load import DTYPES, Implementation, Unusable, load_all
from harness.sizes import Sizes, beyond
from refimpl.hardware import A100, H100, H200, Card

DEVICES = {
    "cpu": lambda: True,
    "cuda": lambda: torch.cuda.is_available(),
    "mps": lambda: torch.backends.mps.is_available(),
}


# Models that claims about any model run on by default: a large one that the reference can build, plain
# feed-forwards with biases, windows with tied tables, latents with experts.
MODELS = ("llama-3.1-405b", "gpt2", "gemma-2-9b", "deepseek-v3")

NAMED_CARDS = {"a100-80gb": A100, "h100-80gb": H100, "h200": H200}


@dataclass
class Setup:
    """What a run judges, and where."""

    impls: list[Implementation]
    devices: list[str]
    dtypes: list[str]
    models: list[Sizes]
    card: Card
    sizing: bool = False  # a run on the configurations that were named, and on nothing else


def setup(config: pytest.Config) -> Setup:
    """Read the options. Raises Unusable with one line."""
    option = config.option
    here = str(config.invocation_params.dir)
    if here not in sys.path:
        sys.path.insert(0, here)  # so that pkg.module means a user's own package too
    devices = chosen("--device", option.device, DEVICES)
    for name in devices:
        if not DEVICES[name]():
            raise Unusable(f"--device={name}: no such device here; present: {', '.join(present())}")
    devices = devices or present()
    if "mps" in devices and os.environ.get("PYTORCH_ENABLE_MPS_FALLBACK", "0") != "0":
        raise Unusable("unset PYTORCH_ENABLE_MPS_FALLBACK: it would label CPU results as MPS")
    dtypes = chosen("--dtype", option.dtype, DTYPES) or ["float32"]
    if option.seeds < 1:
        raise Unusable(f"--seeds={option.seeds}: give a number of seeds of at least 1")
    if option.verdicts and not Path(option.verdicts).absolute().parent.is_dir():
        raise Unusable(f"--verdicts={option.verdicts}: no such folder; give a path in an existing one")
    for path in option.report or []:
        if not path.endswith((".html", ".md")) or not Path(path).absolute().parent.is_dir():
            raise Unusable(f"--report={path}: give PATH.html or PATH.md in an existing folder")
    models = [read(spec) for spec in dict.fromkeys(option.config or MODELS)]
    impls = load_all(option.impl or ["refimpl"])
    return Setup(impls, devices, dtypes, apart(models), card(option.card), bool(option.config))


def strict(config: pytest.Config) -> bool:
    """--strict is pytest's own option; here it also fails the cases that an implementation declines."""
    return "strict=true" in (config.option.override_ini or ())


def chosen(flag: str, given: list[str] | None, allowed: Any) -> list[str]:
    names = [name for text in given or [] for name in text.split(",")]
    for name in names:
        if name not in allowed:
            raise Unusable(f"{flag}={name}: unknown; give one of {', '.join(allowed)}")
    return list(dict.fromkeys(names))


def apart(models: list[Sizes]) -> list[Sizes]:
    """Models of one name, from two files, told apart by a number."""
    names = [model.name for model in models]
    again = [names[:i].count(name) for i, name in enumerate(names)]
    return [replace(m, name=f"{m.name}-{n + 1}") if n else m for m, n in zip(models, again, strict=True)]


def concerned(needs: tuple[str, ...], run: Setup) -> list[Sizes]:
    """The models that a claim about any model runs on: by default those that the interface can express."""
    return [model for model in run.models if run.sizing or not needs or not beyond(model)]


def card(text: str) -> Card:
    """An accelerator by name, or memory=..,bandwidth=..,flops=.. in bytes, bytes/s and FLOP/s."""
    if text in NAMED_CARDS:
        return NAMED_CARDS[text]
    expected = f"{', '.join(NAMED_CARDS)}, or memory=80e9,bandwidth=3.35e12,flops=989e12"
    given = dict(part.partition("=")[::2] for part in text.split(","))
    if set(given) != {"memory", "bandwidth", "flops"}:
        raise Unusable(f"--card={text}: unknown; give {expected}")
    for name, value in given.items():
        try:
            sound = 0 < float(value) < 1e21
        except ValueError:
            sound = False
        if not sound:
            raise Unusable(
                f"--card={text}: {name} is {value!r}; expected a positive number, as in {expected}"
            )
    memory, bandwidth, flops = (float(given[name]) for name in ("memory", "bandwidth", "flops"))
    return Card("card of your own", "", memory, bandwidth, flops, "--card")


def present() -> list[str]:
    return [name for name, there in DEVICES.items() if there()]


def device_name(name: str) -> str:
    """The device as its maker names it."""
    import platform

    if name == "cuda":
        return torch.cuda.get_device_name()
    info = Path("/proc/cpuinfo")
    lines = info.read_text(encoding="utf-8").splitlines() if info.exists() else []
    named = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return next(filter(None, named), platform.processor() or platform.machine())
