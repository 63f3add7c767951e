"""What one case came to, and how to say it."""

import sys
import traceback
from pathlib import Path

import pytest

from harness import checks, report
from harness.claims import Claim
from harness.select import CLAIM, subject_of
from harness.tested import Deviation, Tested
from harness.verdicts import BREAKS, ERROR, HOLDS, KNOWN, NOT_OFFERED, Case

ROOT = Path(__file__).parent.parent
CALLED = pytest.StashKey[Tested]()


def outcome(item: pytest.Item, call: pytest.CallInfo[None]) -> Case:
    """The case's outcome, with the figure that decided it."""
    claim, subject, tested = item.stash[CLAIM], subject_of(item), item.stash.get(CALLED, None)
    worst = max(checks.seen, key=lambda f: f.strain, default=checks.Figure("", None, None, 0.0))
    case = Case(HOLDS, what=worst.what, measured=worst.measured, expected=worst.expected, strain=worst.strain)
    case.composed = bool(tested and tested.composed)
    known = subject.impl.known(claim.id, subject.device, subject.dtype) if subject.impl else None
    case.known_kind = known["kind"] if known else ""
    if call.excinfo is None:
        unused = uncalled(claim, tested)
        if unused:
            case.outcome, case.detail = ERROR, f"vacuous: the case passes without a call to {unused}"
        return case
    error = call.excinfo.value
    raised_by = getattr(error, "raised_by", "")
    case.detail = f"{type(error).__name__}: {error}" if str(error) else type(error).__name__
    if isinstance(error, NotImplementedError) and str(error).startswith("not offered:"):
        case.outcome, case.detail = NOT_OFFERED, str(error).removeprefix("not offered:").strip()
    elif claim.on == "meta" and raised_by and not isinstance(error, Deviation):
        case.outcome, case.detail = NOT_OFFERED, f"cannot run on meta: {case.detail.splitlines()[0]}"
    elif isinstance(error, AssertionError) and not raised_by:
        case.outcome, case.detail = BREAKS, str(error)
    else:
        by = f"{raised_by} raised" if raised_by else "the spec itself raised"
        case.outcome, case.detail = ERROR, f"{by} {shortened(case.detail)}{hint(case.detail, raised_by)}"
    if case.outcome in (BREAKS, ERROR) and not isinstance(error, checks.Breaks):
        case.what, case.measured, case.expected, case.strain = "", None, None, 2.0  # an earlier comparison's
    if known and case.outcome in (BREAKS, ERROR):
        case.known_reason = str(known["reason"])
        case.outcome, case.detail = KNOWN, f"{known['kind']}: {case.known_reason} ({case.detail})"
    return case


def shortened(text: str, most: int = 600) -> str:
    """An error's own words, but not all of thousands of them."""
    return text if len(text) <= most else f"{text[:most].rstrip()} ..."


def hint(detail: str, raised_by: str) -> str:
    """What to do about errors that most often mean something else than they say; empty for others."""
    if raised_by == "load_state_dict":
        return "\n(it takes weights under Hugging Face Llama's names, as refimpl/transformer.py shows)"
    if raised_by and "requires grad" in detail:
        return "\n(GRADIENTS = False says that its outputs carry no gradient)"
    if raised_by and any(name in detail for name in ("BFloat16", "Half", "float16")):
        return '\n(DTYPES = ("float32", ...) says which dtypes it supports)'
    return ""


def uncalled(claim: Claim, tested: Tested | None) -> str:
    """The interface names that a claim needs and a case never called."""
    calls = tested.calls if tested else {}
    return ", ".join(name for name in claim.needs if not calls.get(name))


def words(item: pytest.Item, case: Case) -> str:
    """A failure in words: the claim, the figures, the call, and how to see it again."""
    claim, subject, tested = item.stash[CLAIM], subject_of(item), item.stash.get(CALLED, None)
    who = f" for {subject.impl.label}" if subject.impl else ""
    where = f" on {report.place(claim, subject.device, subject.dtype)}"
    what = {NOT_OFFERED: "is declined"}.get(case.outcome, case.outcome)
    lines = [f"{claim.id} {what}{who}{where}", f"    claim: {claim.statement}"]
    lines += [f"    {line}" for line in case.detail.splitlines()]
    if case.outcome == ERROR:
        lines += user_frames(item)
    if tested and tested.last:
        lines.append(f"    last call: {tested.last}")
    return "\n".join([*lines, f"    again: {command(item)}"])


def user_frames(item: pytest.Item) -> list[str]:
    """Where the implementation raised: the frames outside harness, pytest and the spec."""
    error = sys.last_value if hasattr(sys, "last_value") else None
    hidden = (str(ROOT / "harness"), str(ROOT / "spec"), "_pytest", "pluggy")
    frames = traceback.extract_tb(error.__traceback__) if error else []
    own = [f for f in frames if not any(part in f.filename for part in hidden)]
    return [f"    at {f.filename}:{f.lineno} in {f.name}: {f.line}" for f in own[-3:]]


def command(item: pytest.Item) -> str:
    """The command that runs this one case again."""
    option, subject = item.config.option, subject_of(item)
    parts = ["pytest", f"'{item.nodeid}'"]
    if subject.impl:
        parts.append(f"--impl={subject.impl.spec}")
    if subject.device and subject.device != "meta":
        parts.append(f"--device={subject.device}")
    if subject.dtype and not item.stash[CLAIM].dtypes:
        parts.append(f"--dtype={subject.dtype}")
    parts += [f"--config={spec}" for spec in option.config or []]
    parts += [f"--card={option.card}"] if option.config else []
    drawn = item.funcargs.get("draw") if isinstance(item, pytest.Function) else None
    seed = getattr(drawn, "seed", option.seed)
    return " ".join([*parts, *([f"--seed={seed}"] if seed else [])])
