"""Find an implementation by path or module name, and read what it says of itself."""

import difflib
import importlib
import importlib.util
import os
import re
import sys
import types
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch

from harness.claims import NAMES, TOPICS, Claim

DTYPES = {
    "float32": torch.float32,
    "float64": torch.float64,
    "bfloat16": torch.bfloat16,
    "float16": torch.float16,
}
KINDS = ("defect", "convention", "limit")


class Unusable(Exception):
    """An option or an implementation that cannot be used: what, expected what, and what to do."""


@dataclass(frozen=True)
class Implementation:
    """Something that offers interface names, and what it says of itself."""

    label: str
    spec: str
    offers: dict[str, Any]
    docstring: str = ""
    dtypes: tuple[str, ...] = ()
    devices: tuple[str, ...] = ()
    gradients: bool = True
    differs: dict[str, str] = field(default_factory=dict)
    known_breaks: tuple[dict[str, Any], ...] = ()

    def refuses(self, claim: Claim, device: str, dtype: str) -> str:
        """Why this claim cannot be judged here; empty when it can."""
        if claim.on != "meta" and self.devices and device not in self.devices:
            return f"runs on {', '.join(self.devices)} only"
        if dtype and self.dtypes and dtype not in self.dtypes:
            return f"supports {', '.join(self.dtypes)} only"
        if device == "mps" and dtype == "float64":
            return "MPS has no float64"
        missing = [name for name in claim.needs if name not in self.offers]
        if missing and not self.composes(claim):
            return f"offers no {' and no '.join(missing)}"
        if claim.gradients and not self.gradients:
            return "says GRADIENTS = False"
        if "Transformer" in claim.needs and not missing and claim.topic in self.differs:
            return f"differs by design: {self.differs[claim.topic]}"
        return ""

    def composes(self, claim: Claim) -> bool:
        """Judged inside a model made of its functions and the reference's."""
        absent = claim.needs == ("Transformer",) and "Transformer" not in self.offers
        return absent and any(name in self.offers for name in claim.through)

    def known(self, claim: str, device: str, dtype: str) -> dict[str, Any] | None:
        """The KNOWN_BREAKS entry that covers this verdict."""
        for entry in self.known_breaks:
            here = all(
                key not in entry or value in listed(entry[key])
                for key, value in (("device", device), ("dtype", dtype))
            )
            if entry["claim"] == claim and here and installed(entry.get("versions") or {}):
                return entry
        return None


def load(spec: str) -> Implementation:
    """PATH.py, pkg.module or pkg.module:object -> Implementation. Raises Unusable."""
    if not spec:
        raise Unusable("--impl= names nothing; give PATH.py, pkg.module or pkg.module:object")
    path, _, attribute = spec.partition(":") if not os.path.exists(spec) else (spec, "", "")
    try:
        found: Any = from_file(path) if is_file(path) else importlib.import_module(path)
        for part in filter(None, attribute.split(".")):
            found = getattr(found, part)
    except Unusable:
        raise
    except ModuleNotFoundError as error:
        if error.name and (path == error.name or path.startswith(error.name + ".")):
            raise Unusable(
                f"--impl={spec}: no module {error.name!r}; give PATH.py, pkg.module or "
                f"pkg.module:object (a path ends in .py)"
            ) from None
        raise Unusable(f"--impl={spec} needs {error.name!r}, which is not installed") from None
    except AttributeError as error:
        if attribute:
            raise Unusable(f"--impl={spec}: {error}") from None
        raise Unusable(raised(spec, error)) from None
    except (Exception, SystemExit) as error:
        raise Unusable(raised(spec, error)) from None
    return describe(spec, found)


def is_file(path: str) -> bool:
    return path.endswith(".py") or os.sep in path


def from_file(path: str) -> types.ModuleType:
    """Import a file under a name of its own, so that a user's json.py stays out of json's way."""
    file = Path(path).expanduser().resolve()
    if not file.is_file():
        raise Unusable(f"--impl={path}: no such file; give an existing PATH.py or a module's name")
    if str(file.parent) not in sys.path:
        sys.path.append(str(file.parent))  # its neighbours are importable
    spec = importlib.util.spec_from_file_location(f"implementation_{file.stem}", file)
    if spec is None or spec.loader is None:
        raise Unusable(f"--impl={path} is not a Python file; give PATH.py")
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


def raised(spec: str, error: BaseException) -> str:
    """One line: what an import raised, and where."""
    frame = error.__traceback__
    while frame and frame.tb_next:
        frame = frame.tb_next
    at = f" ({frame.tb_frame.f_code.co_filename}:{frame.tb_lineno})" if frame else ""
    text = " ".join(str(error).split())
    return f"--impl={spec} fails at import: {type(error).__name__}: {text}{at}; mend it and rerun"


def describe(spec: str, found: Any) -> Implementation:
    """Read the offered names and the optional attributes. Raises Unusable for a malformed one."""
    has = found.get if isinstance(found, dict) else lambda name, other=None: getattr(found, name, other)
    offers = {name: has(name) for name in NAMES if has(name) is not None}
    if not offers:
        raise Unusable(f"--impl={spec} offers none of {', '.join(NAMES)}; define at least one")
    for name, value in offers.items():
        if not callable(value):
            raise Unusable(f"--impl={spec}: {name} is a {type(value).__name__}, not callable")
    differs = has("DIFFERS") or {}
    if not isinstance(differs, dict) or not set(differs) <= set(TOPICS):
        raise Unusable(f"--impl={spec}: DIFFERS maps topics to reasons; topics are {', '.join(TOPICS)}")
    return Implementation(
        label=Path(spec).stem if is_file(spec) else spec,
        spec=spec,
        offers=offers,
        docstring=(has("__doc__") or "").strip(),
        dtypes=words(spec, "DTYPES", has("DTYPES"), tuple(DTYPES)),
        devices=words(spec, "DEVICES", has("DEVICES"), ("cpu", "cuda", "mps")),
        gradients=bool(has("GRADIENTS", True)),
        differs=dict(differs),
        known_breaks=tuple(known_break(spec, entry) for entry in has("KNOWN_BREAKS") or ()),
    )


def words(spec: str, name: str, value: Any, allowed: tuple[str, ...]) -> tuple[str, ...]:
    """A list of names, given as text or (for dtypes) as torch's own objects."""
    if value is None:
        return ()
    if isinstance(value, (str, torch.dtype)):
        value = (value,)
    found = tuple(str(item).removeprefix("torch.") for item in value)
    if not found or not set(found) <= set(allowed):
        raise Unusable(f"--impl={spec}: {name} lists some of {', '.join(allowed)}, not {value!r}")
    return found


def known_break(spec: str, entry: Any) -> dict[str, Any]:
    """A KNOWN_BREAKS entry names claim, kind and reason; dtype, device, versions narrow it."""
    fields = {"claim", "kind", "reason", "dtype", "device", "versions"}
    well_formed = (
        isinstance(entry, dict)
        and {"claim", "kind", "reason"} <= set(entry) <= fields
        and entry["kind"] in KINDS
    )
    if not well_formed:
        raise Unusable(
            f"--impl={spec}: a KNOWN_BREAKS entry has claim, kind ({', '.join(KINDS)}), reason and "
            f"perhaps dtype, device, versions; not {entry!r}"
        )
    return entry


def listed(value: Any) -> tuple[str, ...]:
    """One name, or several, as several."""
    return (value,) if isinstance(value, str) else tuple(value)


def installed(versions: dict[str, str]) -> bool:
    """Whether the installed libraries meet requirements such as {"torch": "<2.14"}."""
    if not versions:
        return True
    from importlib.metadata import PackageNotFoundError, version

    from packaging.specifiers import SpecifierSet

    try:
        return all(
            SpecifierSet(spec).contains(version(lib), prereleases=True) for lib, spec in versions.items()
        )
    except PackageNotFoundError:
        return False


def load_all(specs: list[str]) -> list[Implementation]:
    """Each implementation once, with labels that tell them apart."""
    found = [load(spec) for spec in dict.fromkeys(specs)]
    check_claims(found)
    labels = [one.label for one in found]
    for i, one in enumerate(found):
        if labels.count(one.label) > 1:
            found[i] = Implementation(**{**one.__dict__, "label": one.spec})
    return found


def check_claims(impls: list[Implementation]) -> None:
    """Raises Unusable where an entry of KNOWN_BREAKS names no claim.

    Ids are read off the text of the tests, since not every run collects them all.
    """
    named = [(impl, str(entry["claim"])) for impl in impls for entry in impl.known_breaks]
    if not named:
        return
    root = Path(__file__).parent.parent
    files = [path for folder in ("spec", "benchmarks") for path in sorted((root / folder).glob("test_*.py"))]
    ids = [id for path in files for id in re.findall(r'@claim\(\s*"([^"]+)"', path.read_text("utf-8"))]
    for impl, claim in named:
        if claim not in ids:
            near = difflib.get_close_matches(claim, ids, n=1)
            meant = f"did you mean {near[0]}? " if near else ""
            raise Unusable(
                f"--impl={impl.spec}: KNOWN_BREAKS names {claim!r}, which is no claim; {meant}"
                f"pytest --claims lists them"
            )
