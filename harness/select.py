"""Whom each claim judges, and what -k selects."""

import itertools
import re
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
    """Whom a case judges, and where; or, with `absent`, where its claim is not offered and why."""

    impl: Implementation | None
    device: str
    dtype: str
    absent: tuple[tuple[str, str, str, str], ...] = ()  # implementation, device, dtype, reason

    def key(self, claim: Claim) -> Key:
        return (claim.id, self.impl.label if self.impl else "", self.device, self.dtype)

    def __str__(self) -> str:
        who = self.impl.label if self.impl else "absent" if self.absent else ""
        return "-".join(filter(None, (who, self.device, self.dtype)))


def subjects(claim: Claim, run: Setup) -> list[Subject]:
    """Whom a claim judges. All that it is not offered by are one subject, so that they cost nothing."""
    if not claim.needs:
        return [Subject(None, device, "") for device in run.devices] if claim.per else []
    if claim.on == "meta":
        spots = [("meta", "")]
    else:
        spots = [(d, t) for d in run.devices for t in claim.dtypes or run.dtypes]
    every = [(impl, d, t, impl.refuses(claim, d, t)) for impl in run.impls for d, t in spots]
    absent = tuple((impl.label, d, t, why) for impl, d, t, why in every if why)
    offered = [Subject(impl, d, t) for impl, d, t, why in every if not why]
    return offered + ([Subject(None, "", "", absent)] if absent else [])


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


def topic_of(path: Path) -> str:
    """The topic whose claims a file holds: spec/test_lm_head.py has those of lm-head; empty elsewhere."""
    topic = path.stem.removeprefix("test_").replace("_", "-")
    return topic if topic in TOPICS and path.parent.name == "spec" else ""


def misplaced(item: pytest.Item) -> str:
    """A claim in another topic's file, where -k would not look for it."""
    topic = topic_of(Path(item.path))
    if topic and CLAIM in item.stash and item.stash[CLAIM].topic != topic:
        return f"{item.stash[CLAIM].id} stands in {item.path.name}, the file of topic {topic}"
    return ""


def compiled(expression: str) -> Any:
    from _pytest.mark.expression import Expression

    try:
        return Expression.compile(expression.strip())
    except SyntaxError as error:
        raise pytest.UsageError(f"-k {expression!r} is no keyword expression: {error}") from None


def leaves_out(path: Path, expression: str) -> bool:
    """Whether -k can select nothing in a topic's file, so that it need not even be read."""
    topic = topic_of(path)
    if not topic or not expression.strip():
        return False
    words = set(re.findall(r"[^\s()]+", expression)) - {"and", "or", "not"}
    undecided = [w for w in words if w.partition(".")[0] == topic != w or w.partition(".")[0] not in TOPICS]
    for values in itertools.product((False, True), repeat=len(undecided)):
        known = dict(zip(undecided, values, strict=True))
        if len(undecided) > 4 or compiled(expression).evaluate(lambda w, k=known: k.get(w, w == topic)):
            return False
    return True


def select(config: pytest.Config, items: list[pytest.Item], expression: str) -> None:
    """-k, where a topic or a claim's id matches that claim exactly, and any other word as in pytest."""
    if not expression.strip():
        return
    from _pytest.mark import KeywordMatcher

    ids = {item.stash[CLAIM].id for item in items if CLAIM in item.stash}

    def matches(item: pytest.Item) -> Callable[..., bool]:
        mark = item.get_closest_marker("receipts")
        topic = mark.args[0] if mark else item.stash[CLAIM].topic if CLAIM in item.stash else ""
        own = (topic, item.stash[CLAIM].id) if CLAIM in item.stash else (topic,)
        usual = KeywordMatcher.from_item(item)
        return lambda word: (
            word in own if topic and (word in TOPICS or word in ids) else usual(word) or word in own[-1]
        )

    expr = compiled(expression)
    chosen = [item for item in items if expr.evaluate(matches(item))]
    dropped = [item for item in items if item not in set(chosen)]
    if dropped:
        config.hook.pytest_deselected(items=dropped)
        items[:] = chosen
