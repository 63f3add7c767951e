"""Receipts: the tables behind claims, printed for what is tested and locked for the reference."""

import json
import math
import re
from dataclasses import asdict, dataclass
from typing import Any

from syrupy.extensions.single_file import SingleFileSnapshotExtension, WriteMode

DECIMAL = re.compile(r"[-+]?\d+\.\d+(?:[eE][-+]?\d+)?")


@dataclass(frozen=True)
class Table:
    """A printed table. Cells are text or numbers; a float prints with four significant digits."""

    title: str
    columns: tuple[str, ...]
    rows: tuple[tuple[Any, ...], ...]
    note: str = ""

    def __str__(self) -> str:
        cells = [self.columns, *(tuple(cell(value) for value in row) for row in self.rows)]
        widths = [max(len(row[i]) for row in cells) for i in range(len(self.columns))]
        right = [all(not isinstance(row[i], str) for row in self.rows) for i in range(len(widths))]
        lines = [
            "  ".join(
                text.rjust(width) if flush else text.ljust(width)
                for text, width, flush in zip(row, widths, right, strict=True)
            ).rstrip()
            for row in cells
        ]
        lines.insert(1, "  ".join("-" * width for width in widths))
        return "\n".join([self.title, "", *lines, *([f"\n{self.note}"] if self.note else [])])

    def to_json(self) -> str:
        return json.dumps(asdict(self))

    @staticmethod
    def from_json(text: str) -> "Table":
        found = json.loads(text)
        rows = tuple(tuple(row) for row in found["rows"])
        return Table(found["title"], tuple(found["columns"]), rows, found["note"])


def cell(value: Any) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int):
        return f"{value:,}"
    return f"{value:.4g}" if isinstance(value, float) else str(value)


def noise(value: float, bound: float) -> str:
    """Rounding noise as the bound it stays under; a value over the bound is shown."""
    return f"< {bound:.0e}" if abs(value) < bound else f"{value:.1e}"


class Receipt(SingleFileSnapshotExtension):
    """A text file that must match exactly, but for decimals, which may move by a part in a thousand."""

    _write_mode = WriteMode.TEXT
    file_extension = "txt"

    def matches(self, *, serialized_data: Any, snapshot_data: Any) -> bool:
        ours, theirs = DECIMAL.findall(serialized_data), DECIMAL.findall(snapshot_data)
        return words(serialized_data) == words(snapshot_data) and all(
            math.isclose(float(a), float(b), rel_tol=1e-3, abs_tol=1e-7)
            for a, b in zip(ours, theirs, strict=True)
        )


def words(text: str) -> list[str]:
    """The text without its decimals and its spacing: a longer number moves the columns."""
    return re.sub(r"-{2,}", "--", DECIMAL.sub("#", text)).split()
