"""python -m harness.compare A.jsonl B.jsonl [...]: what changed from the first run to each of the others.

A verdict is compared with the one on the same claim, implementation, device and dtype. Where both runs judge
one implementation, or on one device, or in one dtype, those are compared whatever they are called: a kernel
before and after, another machine. Exit status 0, nothing newly breaks; 1, something does; 2, a file cannot be
used.
"""

import re
import sys
from math import isfinite

from harness.load import Unusable
from harness.runs import FAILING, Line, Run, figures, read, where
from harness.verdicts import HOLDS, KNOWN, NOT_OFFERED, Key

FIELDS = {1: "implementation", 2: "device", 3: "dtype"}
NOWHERE = ("", "meta")  # verdicts reached on no device and in no dtype
KINDS = (
    "newly breaks",
    "healed",
    "moved by more than the tolerance",
    "known to break now",
    "no longer offered",
    "offered now",
)


def expectation(line: Line) -> tuple[float, float] | None:
    """(figure, how far it may be off), from "1.5 within 0.01" or "1.4 to 1.6"."""
    said = str(line["expected"])
    within = re.fullmatch(r"(\S+) within (\S+)", said)
    band = re.fullmatch(r"(\S+) to (\S+)", said)
    try:
        if within:
            return float(within[1]), float(within[2])
        return (
            ((float(band[1]) + float(band[2])) / 2, (float(band[2]) - float(band[1])) / 2) if band else None
        )
    except ValueError:
        return None


def moved(before: Line, after: Line) -> bool:
    """Whether the deciding figure, expected to be the same in both, moved by more than it may be off."""
    a, b = before["measured"], after["measured"]
    wanted, now_wanted = expectation(before), expectation(after)
    if wanted is None or now_wanted is None or before["what"] != after["what"]:
        return False
    allowed = max(wanted[1], now_wanted[1])
    same = abs(wanted[0] - now_wanted[0]) <= allowed
    return same and all(isinstance(x, int | float) and isfinite(x) for x in (a, b)) and abs(a - b) > allowed


def change(before: Line, after: Line) -> str:
    """One of KINDS, or nothing."""
    was, now = before["verdict"], after["verdict"]
    if (was in FAILING) != (now in FAILING):
        healed = "healed" if now == HOLDS else "known to break now" if now == KNOWN else "no longer offered"
        return "newly breaks" if now in FAILING else healed
    if now != was and now == KNOWN:
        return "known to break now"
    if was == KNOWN and now == HOLDS:
        return "healed"
    if (was == NOT_OFFERED) != (now == NOT_OFFERED):
        return "offered now" if was == NOT_OFFERED else "no longer offered"
    return "moved by more than the tolerance" if moved(before, after) else ""


def alone(run: Run, at: int) -> str:
    """The one implementation, device or dtype that a run judges; empty where it judges several."""
    found = {key[at] for key in run.verdicts} - set(NOWHERE)
    return found.pop() if len(found) == 1 else ""


def renamed(a: Run, b: Run) -> dict[tuple[int, str], str]:
    """(place in the key, its value in b) -> its value in a, where each run has only one."""
    pairs = {at: (alone(b, at), alone(a, at)) for at in FIELDS}
    return {(at, new): old for at, (new, old) in pairs.items() if new and old}


def matched(a: Run, b: Run) -> dict[Key, tuple[Line | None, Line]]:
    """b's verdicts, each with a's on the same, by b's key."""
    names = renamed(a, b)

    def there(key: Key) -> Key:
        claim, *rest = key
        impl, device, dtype = (names.get((at, value), value) for at, value in enumerate(rest, 1))
        return claim, impl, device, dtype

    return {key: (a.verdicts.get(there(key)), line) for key, line in b.verdicts.items()}


def compare(a: Run, b: Run) -> tuple[list[str], bool]:
    """What changed, in lines, and whether something newly breaks."""
    pairs = list(matched(a, b).values())
    both, only = [(old, new) for old, new in pairs if old], [new for old, new in pairs if not old]
    if not both:
        raise Unusable(f"{a.name} and {b.name} share no verdict; give runs of the same claims")
    found = changes(a, both, only)
    lines = [f"{a.name} -> {b.name}", *differences(a, b)]
    for kind in filter(found.get, KINDS):
        lines += [f"{kind}:", *(line for said in found[kind] for line in said)]
    tally = ", ".join(f"{len(found[kind])} {kind}" for kind in filter(found.get, KINDS))
    lines.append(f"{len(both)} verdict{'s' * (len(both) > 1)} compared: {tally or 'nothing changed'}")
    gone = len(a.verdicts) - len(both)
    lines += [f"{gone} only in {a.name}, {len(only)} only in {b.name}"] if gone or only else []
    return lines, bool(found["newly breaks"])


def changes(a: Run, both: list[tuple[Line, Line]], only: list[Line]) -> dict[str, list[list[str]]]:
    """kind -> what changed that way, some lines each. A new claim that breaks is a new break."""
    found: dict[str, list[list[str]]] = {kind: [] for kind in KINDS}
    for old, new in both:
        kind = change(old, new)
        if kind:
            offer = kind in ("no longer offered", "offered now")
            found[kind].append([heading(new, old["verdict"])] if offer else shown(old, new))
    for new in only:
        if new["verdict"] in FAILING and new["claim"] not in a.claims:
            found["newly breaks"].append([heading(new, "a new claim"), *side("is", new)])
    return found


def differences(a: Run, b: Run) -> list[str]:
    """How the runs themselves differ: names, devices, versions."""
    said = [f"{FIELDS[at]} {old} -> {new}" for (at, new), old in renamed(a, b).items() if old != new]
    then, now = (", ".join(f"{k} ({v})" for k, v in run.header["devices"].items()) for run in (a, b))
    said += [f"devices {then} -> {now}"] if then != now else []
    old, new = a.header["versions"], b.header["versions"]
    names = [name for name in {**old, **new} if old.get(name) != new.get(name)]
    said += [f"{name} {old.get(name, 'none')} -> {new.get(name, 'none')}" for name in names]
    return [f"  {line}" for line in said]


def heading(line: Line, was: str) -> str:
    who = f"{line['impl']} on " if line["impl"] else ""
    return f"  {line['claim']}  {who}{where(line)}: {was} -> {line['verdict']}"


def side(word: str, line: Line) -> list[str]:
    said = " ".join(figures(line).split())
    return [f"      {word}: {said}"] if said else []


def shown(old: Line, new: Line) -> list[str]:
    """A change with the figures on both sides."""
    return [heading(new, old["verdict"]), *side("was", old), *side("is", new)]


def main(paths: list[str]) -> int:
    try:
        if len(paths) < 2 or any(path.startswith("-") for path in paths):
            raise Unusable("give two verdict files or more (pytest --verdicts=A.jsonl)")
        first, *others = [read(path) for path in paths]
        results = [compare(first, other) for other in others]
    except Unusable as error:
        print(f"harness.compare: {error}", file=sys.stderr)
        return 2
    print("\n\n".join("\n".join(lines) for lines, _ in results))
    return int(any(worse for _, worse in results))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
