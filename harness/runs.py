"""Verdict files, read back: the pages and the comparison are made from these."""

import json
from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

from harness.load import Unusable
from harness.report import ARITHMETIC, SCHEMA
from harness.verdicts import BREAKS, ERROR, Key

FAILING = (ERROR, BREAKS)
Line = dict[str, Any]
TYPES: dict[str, Any] = {"string": str, "integer": int, "number": (int, float), "boolean": bool,
                         "object": dict, "array": list}  # fmt: skip


@dataclass
class Run:
    """One run: its header and footer, claims by id, verdicts by key, and receipts."""

    name: str
    header: Line
    footer: Line
    claims: dict[str, Line] = field(default_factory=dict)
    verdicts: dict[Key, Line] = field(default_factory=dict)
    receipts: list[Line] = field(default_factory=list)


def read(path: str) -> Run:
    """A finished run's file. Raises Unusable with one line for any other."""
    try:
        text = Path(path).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        why = getattr(error, "strerror", None) or "it is not UTF-8 text"
        raise Unusable(f"{path}: {why}; give a file that pytest --verdicts wrote") from None
    lines = []
    for number, line in enumerate(filter(str.strip, text.splitlines()), 1):
        try:
            lines.append(checked(json.loads(line)))
        except (ValueError, RecursionError) as error:
            why = f"not JSON ({error})" if isinstance(error, json.JSONDecodeError) else str(error)
            raise Unusable(f"{path}: line {number} is {why}; write the file again with --verdicts") from None
    return gathered(path, lines)


def gathered(name: str, lines: list[Line]) -> Run:
    """The lines of one run, in order. Raises Unusable where the header or the footer is missing."""
    if not lines or lines[0]["kind"] != "header":
        raise Unusable(f"{name} does not begin with a header; give a file that pytest --verdicts wrote")
    if lines[0]["schema"] != SCHEMA:
        raise Unusable(f"{name} has schema {lines[0]['schema']}, expected {SCHEMA}; write it again")
    if lines[-1]["kind"] != "footer":
        raise Unusable(f"{name} has no footer, so its run did not finish; run it again to the end")
    run = Run(name, lines[0], lines[-1])
    for line in lines:
        if line["kind"] == "claim":
            run.claims[("cited:" if line["status"] == "cited" else "") + line["id"]] = line
        elif line["kind"] == "verdict":
            run.verdicts[line["claim"], line["impl"], line["device"], line["dtype"]] = line
        elif line["kind"] == "receipt":
            run.receipts.append(line)
    unknown = sorted({key[0] for key in run.verdicts} - set(run.claims))
    if unknown:
        raise Unusable(f"{name} judges {unknown[0]} without a line that says what it claims; write it again")
    return run


@cache
def shapes() -> dict[str, Line]:
    """kind of line -> its part of the schema"""
    schema = json.loads(Path(__file__).with_name("verdicts.schema.json").read_text(encoding="utf-8"))
    return {part["properties"]["kind"]["const"]: part for part in schema["oneOf"]}


def checked(line: Any) -> Line:
    """The line, when it has what the schema asks for. Raises ValueError that continues "line 3 is"."""
    kind = line.get("kind") if isinstance(line, dict) else None
    if not isinstance(kind, str) or kind not in shapes():
        raise ValueError(f"of no known kind; kinds are {', '.join(shapes())}")
    fits(line, shapes()[kind], f"a {kind}")
    return line


def fits(value: Any, part: Line, name: str) -> None:
    """Raises ValueError where a value is not what this part of the schema says."""
    expected = TYPES.get(part.get("type", ""), object)
    wrong_bool = isinstance(value, bool) and expected in (int, (int, float))
    if not isinstance(value, expected) or wrong_bool or value not in part.get("enum", [value]):
        wanted = " or ".join(part.get("enum", [])) or part["type"]
        raise ValueError(f"malformed: {name} is {str(value)[:40]!r}, expected {wanted}")
    if isinstance(value, dict):
        for key in part.get("required", ()):
            if key not in value:
                raise ValueError(f"malformed: {name} has no {key!r}")
        for key, inner in value.items():
            fits(inner, part.get("properties", {}).get(key, part.get("additionalProperties") or {}), key)
    if isinstance(value, list):
        for inner in value:
            fits(inner, part.get("items", {}), f"an item of {name}")


def where(line: Line) -> str:
    """Where a verdict was reached or a receipt measured."""
    return f"{line['device']} {line['dtype']}".strip() or ARITHMETIC


def figures(line: Line) -> str:
    """The figures that decided a verdict, in words; its detail where it has none."""
    if line["measured"] is None:
        return str(line["detail"])
    what = f"{line['what']}: " if line["what"] else ""
    return f"{what}measured {line['measured']}, expected {line['expected']}"


def excess(line: Line) -> str:
    """How far past what is allowed, where the verdict's figures have a tolerance."""
    strain = line["strain"]
    if line["verdict"] not in FAILING or line["measured"] is None or not 1 < strain < 1e300 or strain == 2:
        return ""
    return f"{strain:.3g} times what is allowed" if strain < 1000 else "over 1000 times what is allowed"


def unequal(names: Iterable[str]) -> dict[str, str]:
    """Names as short as they stay different: the part after the last dot or slash where that is enough."""
    names = list(dict.fromkeys(names))
    last = [name.replace("/", ".").removesuffix(".py").rsplit(".", 1)[-1] or name for name in names]
    return {name: end if last.count(end) == 1 else name for name, end in zip(names, last, strict=True)}
