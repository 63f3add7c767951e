"""The command line's options, read once: what a run judges, and where."""

import os
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import torch

from harness.load import DTYPES, Implementation, Unusable, load_all

DEVICES = {
    "cpu": lambda: True,
    "cuda": lambda: torch.cuda.is_available(),
    "mps": lambda: torch.backends.mps.is_available(),
}


@dataclass
class Setup:
    """What a run judges, and where."""

    impls: list[Implementation]
    devices: list[str]
    dtypes: list[str]


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
    return Setup(load_all(option.impl or ["refimpl"]), devices, dtypes)


def strict(config: pytest.Config) -> bool:
    """--strict is pytest's own option; here it also fails the cases that an implementation declines."""
    return "strict=true" in (config.option.override_ini or ())


def chosen(flag: str, given: list[str] | None, allowed: Any) -> list[str]:
    names = [name for text in given or [] for name in text.split(",")]
    for name in names:
        if name not in allowed:
            raise Unusable(f"{flag}={name}: unknown; give one of {', '.join(allowed)}")
    return list(dict.fromkeys(names))


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
