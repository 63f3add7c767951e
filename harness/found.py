"""What one or several runs say, by what a page shows it under."""

from collections.abc import Iterable
from dataclasses import dataclass, field
from itertools import combinations

from harness.claims import TOPICS
from harness.receipts import Table
from harness.runs import Line, Run, unequal, where
from harness.verdicts import Key

DIVIDE = ("impl", "device", "keyword")  # options that say which part of a run a machine takes


@dataclass(frozen=True)
class Column:
    """An implementation on a device; in one run of several, where two of them are no parts of one."""

    impl: str
    device: str
    run: str


@dataclass
class Found:
    """Everything the runs say. who is a short name and a place: "torch_nn on cpu float32"."""

    runs: list[Run]
    columns: list[Column] = field(default_factory=list)
    short: dict[str, str] = field(default_factory=dict)  # names of implementations, as short as they differ
    claims: dict[str, Line] = field(default_factory=dict)
    verdicts: dict[str, list[tuple[str, Line]]] = field(default_factory=dict)  # claim -> (run, verdict)
    tables: dict[str, dict[str, dict[str, Table]]] = field(default_factory=dict)  # claim, title, who

    @property
    def impls(self) -> list[str]:
        return list(self.short)

    def who(self, run: str, line: Line) -> str:
        """Whom and where a verdict or a receipt is of; the run's name where two runs have it."""
        again = any(
            c.run for c in self.columns if c.impl == line["impl"] and c.device in (line["device"], "")
        )
        name = f"{self.short.get(line['impl'], line['impl'])} on " if line["impl"] else ""
        return f"{name}{where(line)}" + (f" ({run})" if again else "")

    def topics(self) -> list[str]:
        """In the documents' order, then any that are not theirs."""
        seen = dict.fromkeys(topic_of(id) for id, claim in self.claims.items() if claim["status"] != "cited")
        return sorted(seen, key=lambda topic: TOPICS.index(topic) if topic in TOPICS else len(TOPICS))

    def all_tables(self) -> dict[str, dict[str, Table]]:
        """title -> who -> table, whichever claim rests on it"""
        tables: dict[str, dict[str, Table]] = {}
        for titles in self.tables.values():
            for title, by_who in titles.items():
                tables[title] = by_who | tables.get(title, {})
        return tables


def topic_of(claim: str) -> str:
    return claim.partition(".")[0]


def places(run: Run) -> list[tuple[str, str]]:
    """Every implementation on every device of a run, in the order they were asked for."""
    return [(impl, device) for impl in run.header["implementations"] for device in run.header["devices"]]


def twice(runs: list[Run]) -> set[tuple[str, str]]:
    """Places that runs judge in a column each: on the same claim, or otherwise set up. Parts share one."""
    judged: dict[tuple[str, str], list[tuple[Run, set[Key]]]] = {}
    for run in runs:
        for impl, device in places(run):
            keys = {key for key in run.verdicts if key[1] == impl and key[2] in (device, "meta")}
            if keys:
                judged.setdefault((impl, device), []).append((run, keys))
    return {
        place
        for place, parts in judged.items()
        for (one, keys), (other, others) in combinations(parts, 2)
        if keys & others or not alike(one, other, place[1])
    }


def alike(one: Run, other: Run, device: str) -> bool:
    """Whether two runs can be parts of one: set up alike but for what divides a run, on one make of device.

    A library that only one of them loaded is there for another implementation.
    """
    a, b = one.header, other.header
    versions = a["spec"] == b["spec"] and all(b["versions"].get(n, v) == v for n, v in a["versions"].items())
    options = all(
        a["options"].get(name) == b["options"].get(name)
        for name in {**a["options"], **b["options"]}
        if name not in DIVIDE
    )
    return bool(versions and options and a["devices"][device] == b["devices"][device])


def find(runs: list[Run]) -> Found:
    found = Found(runs)
    again = twice(runs)
    columns = [Column(*p, run.name if p in again else "") for run in runs for p in places(run)]
    order = {impl: i for i, impl in enumerate(dict.fromkeys(column.impl for column in columns))}
    found.columns = sorted(dict.fromkeys(columns), key=lambda column: order[column.impl])
    found.short = unequal(order)
    for run in runs:
        found.claims = run.claims | found.claims
        for line in sorted(run.verdicts.values(), key=lambda v: order.get(v["impl"], -1)):
            found.verdicts.setdefault(line["claim"], []).append((run.name, line))
        for line in sorted(run.receipts, key=lambda r: order.get(r["impl"], -1)):
            rows = tuple(tuple(row) for row in line["rows"])
            table = Table(line["title"], tuple(line["columns"]), rows, line["note"])
            by_title = found.tables.setdefault(line["claim"], {})
            by_title.setdefault(table.title, {})[found.who(run.name, line)] = table
    return found


def together(who: Iterable[str]) -> str:
    """Those of one place together, and places of the same ones: "refimpl, torch_nn on cpu float32"."""
    by_place: dict[str, list[str]] = {}
    for name in who:
        impl, _, place = name.rpartition(" on ")
        by_place.setdefault(place, []).append(impl)
    by_impls: dict[str, list[str]] = {}
    for place, impls in by_place.items():
        by_impls.setdefault(", ".join(impls), []).append(place)
    return "; ".join(" on ".join(filter(None, (impls, ", ".join(p)))) for impls, p in by_impls.items())
