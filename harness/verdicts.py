"""From the outcomes of cases to one verdict per claim, implementation, device and dtype."""

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

HOLDS, BREAKS, ERROR, NOT_OFFERED, KNOWN = "holds", "BREAKS", "error", "not offered", "breaks (known)"

Key = tuple[str, str, str, str]  # claim, implementation, device, dtype


@dataclass
class Case:
    """One run of a claim's test."""

    outcome: str
    node: str = ""
    detail: str = ""
    what: str = ""
    measured: Any = None
    expected: Any = None
    strain: float = 0.0
    seconds: float = 0.0
    composed: bool = False
    n_cases: int = 1
    known_kind: str = ""
    known_reason: str = ""  # of a known break


@dataclass
class Verdict:
    """All cases of one key, the worst one first."""

    key: Key
    cases: list[Case] = field(default_factory=list)
    reason: str = ""

    @property
    def outcome(self) -> str:
        for outcome in (ERROR, BREAKS, KNOWN, HOLDS):
            if any(case.outcome == outcome for case in self.cases):
                return outcome
        return NOT_OFFERED

    @property
    def judged(self) -> list[Case]:
        return [case for case in self.cases if case.outcome != NOT_OFFERED]

    @property
    def worst(self) -> Case:
        """The case that decided: of the verdict's outcome, the one closest to or furthest past its bound."""
        deciding = [case for case in self.cases if case.outcome == self.outcome]
        return max(deciding, key=lambda case: case.strain, default=Case(NOT_OFFERED, detail=self.reason))

    @property
    def stale(self) -> bool:
        """A known break all of whose cases ran and hold: the entry has to go."""
        ran = self.cases and len(self.cases) >= self.cases[0].n_cases
        all_hold = all(case.outcome == HOLDS for case in self.cases)
        return bool(ran and all_hold and self.cases[0].known_kind)

    @property
    def fails(self) -> bool:
        return self.outcome in (ERROR, BREAKS) or self.stale

    def __str__(self) -> str:
        if self.stale:
            return "holds, though known to break"
        declined = len(self.cases) - len(self.judged)
        if self.outcome == HOLDS and declined:
            return f"holds ({len(self.judged)} of {len(self.cases)})"
        return self.outcome


def collect(cases: Iterable[tuple[Key, Case]], not_offered: dict[Key, str]) -> dict[Key, Verdict]:
    """Verdicts by key, from cases in any order."""
    found: dict[Key, Verdict] = {}
    for key, case in cases:
        found.setdefault(key, Verdict(key)).cases.append(case)
    for key, reason in not_offered.items():
        found.setdefault(key, Verdict(key, reason=reason))
    return found


def counts(verdicts: Iterable[Verdict]) -> dict[str, int]:
    """How many verdicts of each kind."""
    tally = dict.fromkeys((HOLDS, BREAKS, ERROR, KNOWN, NOT_OFFERED), 0)
    for verdict in verdicts:
        tally[verdict.outcome] += 1
    return tally
