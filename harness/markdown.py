"""A run in GitHub-flavoured Markdown, short enough for a job summary or a pull request."""

from collections import Counter

from harness.runs import FAILING, Line, Run, excess, figures, where
from harness.verdicts import BREAKS, ERROR, HOLDS, KNOWN, NOT_OFFERED

ORDER = (HOLDS, BREAKS, ERROR, KNOWN, NOT_OFFERED)
SHOWN, LONG = 40, 300  # broken claims an implementation, characters of one cell: a comment holds 65,536


def text(value: object) -> str:
    """Words from outside: no markup, link, mention or line break of theirs is one on the page."""
    said = " ".join(str(value).split())
    said = said if len(said) <= LONG else said[: LONG - 1] + "…"
    said = "".join(f"&#{ord(char)};" if char in "\\`*_{}[]()|!~$&<>" else char for char in said)
    said = said.replace("://", "&#58;//").replace("www.", "www&#46;")
    return said.replace("@", "@\u200b").replace("#", "#\u200b").replace("&#\u200b", "&#")


def row(*cells: str) -> str:
    return f"| {' | '.join(cells)} |"


def summary(runs: list[Run]) -> str:
    """What ran, the counts, and what breaks."""
    lines = ["# Transformer spec: verdicts", ""]
    for run in runs:
        lines += [what_ran(run), ""]
    impls = list(dict.fromkeys(impl for run in runs for impl in run.header["implementations"]))
    by_impl = {
        impl: [(run, v) for run in runs for v in run.verdicts.values() if v["impl"] == impl] for impl in impls
    }
    lines += [row("implementation", *ORDER), row("---", *["---:"] * len(ORDER))]
    for impl, found in [
        *by_impl.items(),
        ("", [(r, v) for r in runs for v in r.verdicts.values() if not v["impl"]]),
    ]:
        tally = Counter(v["verdict"] for _, v in found)
        lines.append(row(text(impl) or "no implementation", *(str(tally[verdict]) for verdict in ORDER)))
        by_impl[impl] = found
    for impl, found in by_impl.items():
        lines += broken(
            impl or "no implementation", [(run, v) for run, v in found if v["verdict"] in FAILING]
        )
    return "\n".join(lines) + "\n"


def what_ran(run: Run) -> str:
    devices = ", ".join(f"{name} ({maker})" for name, maker in run.header["devices"].items())
    versions = ", ".join(f"{name} {version}" for name, version in run.header["versions"].items())
    said = f"{run.header['started']}, on {devices}, with {versions}, exit status {run.footer['exit_status']}"
    return text(said)


def broken(impl: str, found: list[tuple[Run, Line]]) -> list[str]:
    """A section for an implementation that breaks something."""
    if not found:
        return []
    lines = [
        "",
        f"## {text(impl)} breaks {len(found)}",
        "",
        row("claim", "says", "on", "came"),
        row(*["---"] * 4),
    ]
    for run, verdict in found[:SHOWN]:
        says = run.claims[verdict["claim"]]["statement"]
        past = f" ({excess(verdict)})" if excess(verdict) else ""
        lines.append(row(*map(text, (verdict["claim"], says, where(verdict), figures(verdict) + past))))
    return [*lines, *([f"\nand {len(found) - SHOWN} more"] if len(found) > SHOWN else [])]
