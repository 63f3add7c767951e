"""What a run says: the verdict table, the receipts, and the JSON lines."""

import json
import sys
from collections import Counter
from collections.abc import Iterable
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any, TextIO

from harness.claims import TOPICS, Claim
from harness.receipts import Table
from harness.verdicts import ERROR, HOLDS, NOT_OFFERED, Key, Verdict, counts

SCHEMA = 1
ARITHMETIC = "arithmetic"
# Named in the header, with their versions, when an adapter loaded them.
LIBRARIES = (
    "transformers", "mlx", "mlx_lm", "onnx", "onnxruntime", "x_transformers", "rotary_embedding_torch",
    "jax", "flax", "keras", "litgpt", "tinygrad",
)  # fmt: skip


def in_reading_order(claims: Iterable[Claim]) -> list[Claim]:
    """By topic, in the documents' order; within a topic as the spec has them."""
    return sorted(claims, key=lambda claim: TOPICS.index(claim.topic))


def place(claim: Claim, device: str, dtype: str) -> str:
    """Where a verdict was reached, in a word or two."""
    if not claim.needs:
        return device or ARITHMETIC
    if claim.on == "meta":
        return "meta"
    if claim.dtypes:
        return f"{device} {'16-bit' if 'float32' not in claim.dtypes else 'own dtypes'}"
    return f"{device} {dtype}"


def table(claims: list[Claim], verdicts: dict[Key, Verdict], impls: list[str]) -> list[str]:
    """One line a claim: its id, where it was judged, and a verdict for each implementation.

    Several devices or dtypes are columns beside each other. A claim that judges no implementation,
    or that is counted on meta or fixes its own dtypes, fills the first column of its implementation.
    """
    by_claim: dict[str, list[Verdict]] = {claim.id: [] for claim in claims}
    for verdict in verdicts.values():
        if verdict.key[0] in by_claim:
            by_claim[verdict.key[0]].append(verdict)
    plain = [
        verdict.key[1:]
        for claim in claims
        if claim.needs and not claim.on and not claim.dtypes
        for verdict in by_claim[claim.id]
    ]
    places = list(dict.fromkeys(f"{device} {dtype}" for _, device, dtype in plain)) or [""]
    several = len(places) > 1
    columns = [(impl, spot) for impl in impls for spot in places] or [("", "")]
    rows = [["claim", "on"] + [f"{impl} {spot}".strip() if several else impl for impl, spot in columns]]
    for claim in in_reading_order(claims):
        found = by_claim[claim.id]
        regular = claim.needs and not claim.on and not claim.dtypes
        spots = dict.fromkeys(place(claim, v.key[2], v.key[3]) for v in found)
        where = "each" if several and regular else ", ".join(spots)
        cells = []
        for impl, spot in columns:
            first = spot == places[0]
            here = [
                v for v in found
                if v.key[1] in (impl, "") and (f"{v.key[2]} {v.key[3]}" == spot if regular else first)
            ]  # fmt: skip
            if not claim.needs and (impl, spot) != columns[0]:
                here = []
            cells.append(worst_word(here))
        mark = "*" if claim.erratum else ""
        rows.append([claim.id + mark, where, *cells])
    widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]))]
    return ["  ".join(text.ljust(w) for text, w in zip(row, widths, strict=True)).rstrip() for row in rows]


def worst_word(verdicts: list[Verdict]) -> str:
    """The worst of several verdicts on one claim, as the table's cell."""
    order = (ERROR, "BREAKS", "breaks (known)", HOLDS, NOT_OFFERED)
    found = min(verdicts, key=lambda v: (not v.fails, order.index(v.outcome)), default=None)
    if found is None:
        return ""
    mark = " (composed)" if any(case.composed for case in found.cases) else ""
    return f"{found}{mark}"


def summary(claims: list[Claim], verdicts: dict[Key, Verdict], impls: list[str]) -> list[str]:
    """The table, what its marks mean, why what is not offered is not, and the counts."""
    lines = table(claims, verdicts, impls)
    if any(claim.erratum for claim in claims):
        lines += ["", "* the document says otherwise here: --claims shows the erratum"]
    lines += why_not(verdicts.values())
    tally = counts(verdicts.values())
    stale = [verdict for verdict in verdicts.values() if verdict.stale]
    lines += ["", "known breaks that hold, which fails the run:"] if stale else []
    lines += [f"  {v.key[1]}: {v.key[0]} holds; take it out of KNOWN_BREAKS" for v in stale]
    said = ", ".join(f"{n} {word}" for word, n in tally.items() if n or word in (HOLDS, "BREAKS"))
    return [*lines, "", f"{len(claims)} claims, {len(verdicts)} verdicts: {said}"]


def catalogue(claims: list[Claim], cited: list[dict[str, str]]) -> list[str]:
    """The claims by topic, in Markdown, and the statements that rest on literature."""
    lines: list[str] = []
    for claim in in_reading_order(claims):
        heading = f"## {claim.topic}"
        if heading not in lines:
            lines += ["", heading, ""]
        needs = " and ".join(claim.needs) or "no implementation"
        through = f" (also composed from {' or '.join(claim.through)})" if claim.through else ""
        on = ", counted on meta" if claim.on else f", in {' and '.join(claim.dtypes)}" if claim.dtypes else ""
        lines.append(f"- `{claim.id}`: {claim.statement}")
        lines.append(f"  Needs {needs}{through}{on}. Source: {claim.source}.")
        if claim.erratum:
            lines.append(f"  **Erratum**: {claim.erratum}.")
    if cited:
        lines += [
            "",
            "## cited",
            "",
            "Statements that rest on literature: listed with their source, never counted as tested.",
            "",
        ]
        lines += [
            f"- `{row['statement']}`: {row['note']} ({row['document']} {row['section']})" for row in cited
        ]
    return lines[1:]


def why_not(verdicts: Iterable[Verdict]) -> list[str]:
    """Each reason for not offering, with who gave it for how many claims."""
    reasons: dict[str, Counter[str]] = {}
    for verdict in verdicts:
        if verdict.outcome == NOT_OFFERED:
            reasons.setdefault(verdict.worst.detail or verdict.reason, Counter())[verdict.key[1]] += 1
    said = [f"  {why}: {', '.join(f'{i} ({n})' for i, n in who.items())}" for why, who in reasons.items()]
    return ["", "not offered, by whom (for how many claims):", *said] if said else []


def claim_line(claim: Claim) -> dict[str, Any]:
    return {
        "kind": "claim",
        "id": claim.id,
        "statement": claim.statement,
        "source": claim.source,
        "needs": list(claim.needs),
        "status": "erratum" if claim.erratum else "tested",
        "erratum": claim.erratum,
        "why": claim.why,
        "about": claim.about,
    }


def cited_line(row: dict[str, str]) -> dict[str, Any]:
    return {
        "kind": "claim",
        "id": row["statement"],
        "statement": row["note"],
        "source": f"{row['document']} {row['section']}",
        "needs": [],
        "status": "cited",
        "erratum": "",
        "why": "",
        "about": "",
    }


def verdict_line(verdict: Verdict) -> dict[str, Any]:
    claim, impl, device, dtype = verdict.key
    worst = verdict.worst
    return {
        "kind": "verdict",
        "claim": claim,
        "impl": impl,
        "device": device,
        "dtype": dtype,
        "verdict": verdict.outcome,
        "composed": any(case.composed for case in verdict.cases),
        "cases": {"run": len(verdict.cases), "judged": len(verdict.judged)},
        "detail": worst.detail or verdict.reason,
        "reason": worst.known_reason,
        "what": worst.what,
        "measured": worst.measured,
        "expected": worst.expected,
        "strain": worst.strain,
        "seconds": round(sum(case.seconds for case in verdict.cases), 4),
    }


def receipt_line(key: Key, text: str) -> dict[str, Any]:
    claim, impl, device, dtype = key
    who = {"claim": claim, "impl": impl, "device": device, "dtype": dtype}
    return {"kind": "receipt", **who, **json.loads(text)}


def header_line(options: dict[str, Any], devices: dict[str, str], rests_on: dict[str, str]) -> dict[str, Any]:
    from datetime import UTC, datetime

    libraries = ["torch", "numpy", "pytest", *(name for name in LIBRARIES if name in sys.modules)]
    return {
        "kind": "header",
        "schema": SCHEMA,
        "spec": installed("transformer-spec"),
        "versions": {name: installed(name) for name in libraries},
        "devices": devices,
        "implementations": rests_on,
        "options": options,
        "started": datetime.now(UTC).isoformat(timespec="seconds"),
    }


def installed(name: str) -> str:
    try:
        return version(name)
    except PackageNotFoundError:
        return "not installed"


class Lines:
    """A JSON-lines file that has a footer only when the run came to its end."""

    def __init__(self, path: str, header: dict[str, Any]) -> None:
        self.file: TextIO = Path(path).open("w", encoding="utf-8")  # noqa: SIM115 (closed at the end of the run)
        self.write(header)

    def write(self, line: dict[str, Any]) -> None:
        self.file.write(json.dumps(line, ensure_ascii=False) + "\n")
        self.file.flush()

    def close(self, body: list[dict[str, Any]]) -> None:
        for line in body:
            self.write(line)
        self.file.close()


def receipts(found: dict[tuple[Key, str], tuple[str, str]]) -> list[str]:
    """The tables that were measured, with whom they were measured on; each once, whatever rests on it."""
    lines: dict[tuple[str, str], list[str]] = {}
    for ((_, impl, device, dtype), title), (_, text) in found.items():
        who = f"[{impl} on {device} {dtype}".strip() + "]" if impl else ""
        lines[who, title] = ["", who, str(Table.from_json(text))]
    return [line for block in lines.values() for line in block]
