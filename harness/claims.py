"""What a claim is, and which implementations it can judge."""

from dataclasses import dataclass
from typing import Any

import pytest

NAMES = ("attention", "rope", "rms_norm", "feed_forward", "Transformer")

TOPICS = (
    "attention", "heads", "scale", "causal", "gqa", "rope", "context", "norm", "block", "ffn",
    "lm-head", "bytes", "cost", "serving", "training", "generation", "device", "contract",
)  # fmt: skip


@dataclass(frozen=True)
class Claim:
    """One checkable statement. Its cases are the parametrization of the test that carries it."""

    id: str
    statement: str
    source: str
    needs: tuple[str, ...] = ()
    through: tuple[str, ...] = ()
    on: str = ""
    per: str = ""
    dtypes: tuple[str, ...] = ()
    gradients: bool = False
    erratum: str = ""
    why: str = ""  # the docstring's further paragraphs
    about: str = ""  # the topic, as its file introduces it

    @property
    def topic(self) -> str:
        return self.id.partition(".")[0]


def claim(
    id: str,
    *,
    needs: str | tuple[str, ...] | None,
    source: str,
    through: tuple[str, ...] = (),
    on: str = "",
    per: str = "",
    dtypes: tuple[str, ...] = (),
    gradients: bool = False,
    erratum: str = "",
) -> pytest.MarkDecorator:
    """Mark a test as the judge of one claim; the test's docstring is the claim's sentence.

    id: topic.what-it-says                 needs: interface names judged, or None for arithmetic
    source: where the documents say it     through: with needs="Transformer", the functions that may
    on="meta": counted, not computed           be judged inside a model composed with the reference
    per="device": arithmetic that runs once a device
    dtypes: the claim's own dtypes, whatever --dtype says
    gradients: the implementation's output must carry a gradient
    erratum: what the document says instead, and what is measured
    """
    return pytest.mark.claim(
        id=id, needs=needs, source=source, through=through, on=on, per=per, dtypes=dtypes,
        gradients=gradients, erratum=erratum,
    )  # fmt: skip


def read(function: Any, marks: list[pytest.Mark]) -> Claim:
    """The claim a test function carries. Raises ValueError with what is wrong with it."""
    where = f"{function.__module__}.{function.__name__}"
    if len(marks) != 1:
        raise ValueError(f"{where} carries {len(marks)} claims; a test carries exactly one")
    given = dict(marks[0].kwargs)
    needs = given.pop("needs")
    needs = (needs,) if isinstance(needs, str) else tuple(needs or ())
    statement, why = paragraphs(function.__doc__)
    about = paragraphs(function.__globals__.get("__doc__"))[0]
    made = Claim(statement=statement, needs=needs, why=why, about=about, **given)
    if not statement:
        raise ValueError(f"{where} has no docstring; it is the sentence of {made.id}")
    if made.topic not in TOPICS or not made.id.partition(".")[2]:
        raise ValueError(f"{made.id} is not topic.what-it-says with a topic of {', '.join(TOPICS)}")
    for name in needs + made.through:
        if name not in NAMES:
            raise ValueError(f"{made.id} needs {name!r}, which is not one of {', '.join(NAMES)}")
    if made.through and needs != ("Transformer",):
        raise ValueError(f"{made.id} judges through {made.through}, so it needs only Transformer")
    return made


def paragraphs(docstring: str | None) -> tuple[str, str]:
    """A docstring's first paragraph and the others, each on one line."""
    first, *others = (" ".join(part.split()) for part in (docstring or "").strip().split("\n\n"))
    return first, "\n".join(others)


def clash(claims: list[Claim]) -> str:
    """The first pair of claims that share an id or a sentence, in words; empty when there is none."""
    seen: dict[str, Claim] = {}
    for made in claims:
        for key in (made.id, made.statement):
            if key in seen:
                return f"two tests claim {key!r} ({seen[key].id} and {made.id})"
            seen[key] = made
    return ""
