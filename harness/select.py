"""Whom each claim judges, and what -k selects."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from harness.claims import TOPICS, Claim
from harness.load import Implementation
from harness.options import Setup
from harness.verdicts import Key

CLAIM = pytest.StashKey[Claim]()


@dataclass(frozen=True)
class Subject:
    """Whom a case judges, and where. With a reason it stands for a claim that is not offered there."""

    impl: Implementation | None
    device: str
    dtype: str
    reason: str = ""

    def key(self, claim: Claim) -> Key:
        return (claim.id, self.impl.label if self.impl else "", self.device, self.dtype)

    def __str__(self) -> str:
        who = self.impl.label if self.impl else ""
        return "-".join(filter(None, (who, self.device, self.dtype)))


def subjects(claim: Claim, run: Setup) -> list[Subject]:
    if not claim.needs:
        return [Subject(None, device, "") for device in run.devices] if claim.per else []
    if claim.on == "meta":
        spots = [("meta", "")]
    else:
        spots = [(d, t) for d in run.devices for t in claim.dtypes or run.dtypes]
    return [
        Subject(impl, device, dtype, impl.refuses(claim, device, dtype))
        for impl in run.impls
        for device, dtype in spots
    ]


def subject_of(item: Any) -> Subject:
    callspec = getattr(item, "callspec", None)
    found = callspec.params.get("subject") if callspec else None
    return found or Subject(None, "", "")


def stray(item: pytest.Item) -> str:
    """A test in spec/ that carries neither a claim nor receipts."""
    in_spec = (
        "spec" in Path(item.path).relative_to(item.config.rootpath).parts
        if item.path.is_relative_to(item.config.rootpath)
        else False
    )
    if in_spec and CLAIM not in item.stash and not item.get_closest_marker("receipts"):
        return f"{item.nodeid} carries no claim"
    return ""


def select(config: pytest.Config, items: list[pytest.Item], expression: str) -> None:
    """-k, where a topic or a claim's id matches that claim exactly, and any other word as in pytest."""
    if not expression.strip():
        return
    from _pytest.mark import KeywordMatcher
    from _pytest.mark.expression import Expression

    try:
        compiled = Expression.compile(expression.strip())
    except SyntaxError as error:
        raise pytest.UsageError(f"-k {expression!r} is no keyword expression: {error}") from None
    ids = {item.stash[CLAIM].id for item in items if CLAIM in item.stash}

    def matches(item: pytest.Item) -> Callable[..., bool]:
        mark = item.get_closest_marker("receipts")
        topic = mark.args[0] if mark else item.stash[CLAIM].topic if CLAIM in item.stash else ""
        own = (topic, item.stash[CLAIM].id) if CLAIM in item.stash else (topic,)
        usual = KeywordMatcher.from_item(item)
        return lambda word: (
            word in own if topic and (word in TOPICS or word in ids) else usual(word) or word in own[-1]
        )

    chosen_items = [item for item in items if compiled.evaluate(matches(item))]
    dropped = [item for item in items if item not in set(chosen_items)]
    if dropped:
        config.hook.pytest_deselected(items=dropped)
        items[:] = chosen_items
