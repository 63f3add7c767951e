"""python -m harness.libraries PAGE.md A.jsonl [...]: one page from the runs of several environments.

What each implementation does with the claims, what its verdicts rest on, what breaks and why, and the whole
matrix, claims down and implementations across. Exit status 0, written; 2, a file cannot be used.
"""

import re
import sys
from collections import Counter
from pathlib import Path

from harness.load import KINDS, Unusable
from harness.markdown import row
from harness.runs import Line, Run, read, where
from harness.verdicts import BREAKS, ERROR, HOLDS, KNOWN, NOT_OFFERED

SIGNS = {
    ERROR: "!",
    BREAKS: "✕",
    "defect": "D",
    "convention": "C",
    "limit": "L",
    HOLDS: "✓",
    NOT_OFFERED: "·",
}
COMPOSED = "○"  # holds, in a model composed of its functions and the reference's
REMAKE = """## Make this page again

Each of `tox -e adapters`, `flex`, `jax`, `keras` and `litgpt` runs libraries that share an environment, and
leaves its verdicts with `tox -e jax -- --verdicts=jax.jsonl`. Then

```
python -m harness.libraries docs/libraries.md adapters.jsonl flex.jsonl jax.jsonl keras.jsonl litgpt.jsonl
```

makes the page of them."""


def escaped(value: object) -> str:
    """Words on one line, in which no character is markup."""
    return re.sub(r"([\\`*|<\[]|^[#>+-]|\b_\B|\B_\b)", r"\\\1", " ".join(str(value).split()))


def kind(line: Line) -> str:
    """A verdict's key in SIGNS: the verdict, or a known break's kind."""
    said = str(line["detail"]).partition(":")[0]
    return said if line["verdict"] == KNOWN and said in KINDS else str(line["verdict"])


def explained(line: Line) -> tuple[str, str]:
    """(why it breaks, what came of it). A known break's detail is "kind: reason (what came)".

    Where its reason ends only the reason tells: both parts are prose, with brackets that may never close.
    """
    said = str(line["detail"])
    if line["verdict"] != KNOWN:
        return "not explained", said
    said, why = said.partition(": ")[2], str(line.get("reason", ""))
    apart = why and said.startswith(f"{why} (") and said.endswith(")")
    return (why, said[len(why) + 2 : -1]) if apart else (why or "not told apart", said)


def merged(runs: list[Run]) -> dict[str, list[Line]]:
    """Implementation -> its verdicts. Raises Unusable for runs of different claims, or twice of one."""
    found: dict[str, list[Line]] = {}
    for run in runs:
        if set(run.claims) != set(runs[0].claims):
            raise Unusable(f"{run.name} and {runs[0].name} are of different claims; run both on one spec")
        for impl in run.header["implementations"]:
            if impl in found:
                raise Unusable(f"{run.name} judges {impl}, as a run before it does; give it once")
            found[impl] = [v for v in run.verdicts.values() if v["impl"] == impl]
    return found


def page(runs: list[Run]) -> str:
    """The whole page. Raises Unusable where runs do not go together."""
    found = merged(runs)
    rests = {impl: text for run in runs for impl, text in run.header["implementations"].items()}
    parts = [opening(runs, found), summary(found, rests), REMAKE, matrix(runs[0], found), "## One by one"]
    parts += [section(impl, lines, rests[impl]) for impl, lines in found.items()]
    return "\n\n".join(parts) + "\n"


def opening(runs: list[Run], found: dict[str, list[Line]]) -> str:
    tested = [claim for claim in runs[0].claims.values() if claim["status"] != "cited" and claim["needs"]]
    tally = Counter(kind(verdict) for lines in found.values() for verdict in lines)
    lines = [
        "# Libraries, claim by claim",
        "",
        f"{len(found)} implementations, {len(tested)} claims about implementations: {tally[HOLDS]} verdicts "
        f"hold, {sum(tally[k] for k in KINDS)} break for a known reason ({plural(tally, *KINDS)}), "
        f"{tally[BREAKS] + tally[ERROR]} for none. Written by `python -m harness.libraries`.",
        "",
        row("run", "on", "versions"),
        row("---", "---", "---"),
    ]
    return "\n".join([*lines, *dict.fromkeys(map(ran, runs))])


def plural(tally: Counter[str], *kinds: str) -> str:
    return ", ".join(f"{tally[k]} {k}{'s' * (tally[k] != 1)}" for k in kinds)


def ran(run: Run) -> str:
    """Day, devices, and versions of what the run imported."""
    devices = ", ".join(f"{name} ({maker})" for name, maker in run.header["devices"].items())
    versions = ", ".join(
        f"{name} {number}".replace("_", "-") for name, number in run.header["versions"].items()
    )
    return row(str(run.header["started"])[:10], escaped(devices), escaped(versions))


def summary(found: dict[str, list[Line]], rests: dict[str, str]) -> str:
    """One line an implementation: what it is, and its verdicts by kind."""
    heads = ("holds", "of them composed", "defect", "convention", "limit", "BREAKS", "error", "not offered")
    lines = [
        "## What each one does",
        "",
        "Verdicts: one for each claim, device and dtype; a claim may have dtypes of its own. Composed:",
        "judged inside a model made of the implementation's functions and the reference's. Defects,",
        "conventions and limits are breaks whose reason is known; each is below.",
        "",
        row("", "implementation", "what it is", *heads),
        row("---:", "---", "---", *["---:"] * len(heads)),
    ]
    for number, (impl, verdicts) in enumerate(found.items(), 1):
        tally = Counter(map(kind, verdicts))
        composed = sum(v["composed"] for v in verdicts if v["verdict"] == HOLDS)
        counts = (tally[HOLDS], composed, *(tally[k] for k in (*KINDS, BREAKS, ERROR, NOT_OFFERED)))
        lines.append(row(str(number), f"`{impl}`", escaped(first_sentence(rests[impl])), *map(str, counts)))
    return "\n".join(lines)


def first_sentence(text: str) -> str:
    return " ".join(text.split("\n\n")[0].split()).split(". ")[0].rstrip(".")


def matrix(run: Run, found: dict[str, list[Line]]) -> str:
    """Claims down, implementations across; those that nobody breaks are folded away."""
    worst = {
        (v["claim"], impl): sign(v)
        for impl, lines in found.items()
        for v in sorted(lines, key=lambda v: -list(SIGNS).index(kind(v)))
    }
    table = {
        claim: [worst.get((claim, impl), "") for impl in found]
        for claim, line in run.claims.items()
        if line["needs"] and line["status"] != "cited"
    }
    broken = {claim: cells for claim, cells in table.items() if not set(cells) <= {"✓", COMPOSED, "·", ""}}
    unmet = {claim: cells for claim, cells in table.items() if set(cells) <= {"·", ""}}
    whole = {claim: cells for claim, cells in table.items() if claim not in broken and claim not in unmet}
    lines = [
        "## Claims down, implementations across",
        "",
        f"✓ holds, {COMPOSED} holds in a composed model, D defect, C convention, L limit, ✕ breaks, "
        "! error, · not offered; the worst of several verdicts. Columns have the numbers of the table above.",
        "",
        f"Claims that break somewhere: {len(broken)}",
        "",
        *rows(broken, len(found)),
    ]
    for said, part in {"hold wherever they are offered": whole, "nobody here offers": unmet}.items():
        summary = f"<details><summary>Claims that {said}: {len(part)}</summary>"
        lines += ["", summary, "", *rows(part, len(found)), "", "</details>"] if part else []
    return "\n".join(lines)


def sign(line: Line) -> str:
    return COMPOSED if line["verdict"] == HOLDS and line["composed"] else SIGNS[kind(line)]


def rows(table: dict[str, list[str]], n: int) -> list[str]:
    head = [row("claim", *map(str, range(1, n + 1))), row("---", *["---"] * n)]
    return head + [row(f"`{claim}`", *cells) for claim, cells in table.items()]


def section(impl: str, verdicts: list[Line], rests: str) -> str:
    """What an implementation's verdicts rest on, and its breaks by their reasons."""
    broken: dict[tuple[str, str], list[str]] = {}
    for verdict in verdicts:
        if verdict["verdict"] in (BREAKS, ERROR, KNOWN):
            why, came = explained(verdict)
            said = f"- `{verdict['claim']}` ({where(verdict)}): {escaped(came)}"
            broken.setdefault((kind(verdict), why), []).append(said)
    lines = [f"### {impl}", "", *(f"> {escaped(line)}".rstrip() for line in rests.splitlines())]
    for (what, why), found in broken.items():
        lines += ["", f"**{what}**: {escaped(why)}", "", *found]
    return "\n".join(lines)


def main(paths: list[str]) -> int:
    try:
        if len(paths) < 2 or any(path.startswith("-") for path in paths) or not paths[0].endswith(".md"):
            raise Unusable(
                "give PAGE.md and the verdict files of one run or more (pytest --verdicts=A.jsonl)"
            )
        made = page([read(path) for path in paths[1:]])
        Path(paths[0]).write_text(made, encoding="utf-8")
    except (Unusable, OSError) as error:
        print(f"harness.libraries: {error}", file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
