"""Pictures of receipts, drawn from their cells and from nothing else. Needs matplotlib (the report extra).

A receipt is known by its title. One whose cells are not what a picture needs has none: the table speaks then.
"""

import io
import math
import re
import warnings
from collections.abc import Callable
from importlib.util import find_spec
from typing import Any

from harness.receipts import Table, cell

NUMBER = re.compile(r"([-+]?\d[\d,]*(?:\.\d+)?(?:e[-+]?\d+)?)\s*([KMGT]?i?)(?:B|FLOP|$|\b)")
UNITS = {"": 1.0} | {p + i: (1024 if i else 1000) ** n for n, p in enumerate("KMGT", 1) for i in ("", "i")}
INK, SERIES = "#010101", ("#0000a0", "#0000a1", "#0000a2", "#0000a3", "#0000a4")  # the page puts its own in
STYLE: Any = {
    "svg.fonttype": "none", "svg.hashsalt": "receipts", "text.parse_math": False, "font.size": 8,
    "text.color": INK, "axes.edgecolor": INK, "axes.labelcolor": INK, "xtick.color": INK, "ytick.color": INK,
    "axes.spines.top": False, "axes.spines.right": False, "legend.frameon": False, "figure.facecolor": "none",
    "axes.facecolor": "none", "savefig.facecolor": "none", "legend.fontsize": 7, "axes.titlesize": 8,
}  # fmt: skip
Tables = dict[str, dict[str, Table]]  # title -> who it was measured on -> table
Drawn = list[tuple[str, Table]]  # each table that differs from the others, with a name for the legend
PLOTS: dict[str, Callable[..., None]] = {}


def plot(title: str) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Register the picture of the receipt with this title: draw(figure, its tables, all tables)."""

    def register(draw: Callable[..., None]) -> Callable[..., None]:
        PLOTS[title] = draw
        return draw

    return register


def distinct(by_who: dict[str, Table]) -> list[tuple[list[str], Table]]:
    """Tables that print alike together, the first one first."""
    found: dict[Any, tuple[list[str], Table]] = {}
    for who, table in by_who.items():
        printed = (table.columns, tuple(tuple(map(cell, row)) for row in table.rows), table.note)
        found.setdefault(printed, ([], table))[0].append(who)
    return list(found.values())


def svg(title: str, tables: Tables) -> str:
    """The picture of a receipt as SVG in the page's colours; empty where there is none."""
    if title not in PLOTS or not find_spec("matplotlib"):
        return ""
    import matplotlib
    from matplotlib.figure import Figure

    drawn = [(named(who), table) for who, table in distinct(tables[title])]
    out = io.StringIO()
    with matplotlib.rc_context(STYLE), warnings.catch_warnings():
        warnings.simplefilter("ignore")  # glyphs that a name has and a font lacks
        figure = Figure(figsize=(4.4, 2.4), layout="constrained")
        try:
            PLOTS[title](figure, drawn[: len(SERIES)], tables)
        except (ValueError, LookupError, StopIteration):
            return ""
        plain(figure)
        figure.savefig(out, format="svg", metadata={"Date": None, "Creator": None})
    return inlined(out.getvalue(), title)


def inlined(text: str, title: str) -> str:
    """A stand-alone SVG made part of a page: no prologue, no fixed size, the page's colours and font."""
    from html import escape

    text = text[text.index("<svg") :].replace(INK, "currentColor")
    text = re.sub(r"<metadata>.*?</metadata>", "", text, flags=re.DOTALL)
    text = re.sub(r' (?:width|height)="[\d.]+pt"', "", text, count=2)
    text = re.sub(r' id="(?!m|p)[^"]*"', "", text)  # what is referred to begins with m or p
    text = re.sub(r"font: ([\d.]+px) [^;\"]*", r"font-size: \1", text)
    for i, colour in enumerate(SERIES):
        text = text.replace(colour, f"var(--s{i})")
    return text.replace("<svg", f'<svg role="img" aria-label="{escape(title)}"', 1)


def plain(figure: Any) -> None:
    """Logarithmic axes with plain numbers."""
    from matplotlib.ticker import FuncFormatter, NullFormatter

    for axes in figure.axes:
        for axis in (axes.xaxis, axes.yaxis):
            if axis.get_scale() != "linear":
                axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,.6g}"))
                axis.set_minor_formatter(NullFormatter())


def named(who: list[str]) -> str:
    """A legend's words for those who measured one table."""
    names = list(dict.fromkeys(name.rpartition(" on ")[0] or name for name in who))
    first = names[0][:28]
    return first + (f" and {len(names) - 1} more" if len(names) > 1 else "")


# --- reading cells ------------------------------------------------------------------------------------


def number(value: Any) -> float:
    """A cell as a number, "16.06 GB" as 1.606e10, "< 1e-06" as its bound. Raises ValueError for none."""
    if isinstance(value, bool | int | float):
        found = float(value)
    else:
        match = NUMBER.search(str(value))
        if not match:
            raise ValueError(f"{value!r} is no number")
        found = float(match[1].replace(",", "")) * UNITS.get(match[2], 1.0)
    if not math.isfinite(found):
        raise ValueError(f"{value!r} is not finite")
    return found


def column(table: Table, name: str, last: int = 0) -> list[Any]:
    """A column's cells by its name; of several with one name the last where last is -1."""
    at = [i for i, found in enumerate(table.columns) if found == name][last]
    return [row[at] for row in table.rows]


def numbers(table: Table, name: str, last: int = 0) -> list[float]:
    return [number(value) for value in column(table, name, last)]


def measured(values: list[Any]) -> list[float]:
    """The second figures of cells that print "document | measured"."""
    return [number(str(value).rpartition("|")[2]) for value in values]


def lines(axes: Any, drawn: Drawn, x: str, y: str, last: int = 0) -> None:
    """One line for each table: column y over column x."""
    for (name, table), colour in zip(drawn, SERIES, strict=False):
        axes.plot(
            numbers(table, x), numbers(table, y, last), marker="o", ms=3, lw=1.2, color=colour, label=name
        )


def legend(axes: Any, drawn: Drawn) -> None:
    if len(drawn) > 1:
        axes.legend()


# --- the pictures -------------------------------------------------------------------------------------


@plot("Weights of random heads by width")
def widths(figure: Any, drawn: Drawn, _: Tables) -> None:
    two = figure.subplots(1, 2)
    for axes, what, unit in zip(two, ("max w", "entropy"), ("largest weight", "entropy, nats"), strict=True):
        for (name, table), colour in zip(drawn, SERIES, strict=False):
            for scale, dash in (("default", "-"), ("scale 1", ":")):
                values = measured(column(table, f"{what}, {scale}"))
                label = f"{name}, {scale}"
                axes.plot(
                    numbers(table, "d_k"), values, dash, marker="o", ms=3, lw=1.2, color=colour, label=label
                )
        axes.set(xscale="log", xlabel="d_k", title=unit, ylim=(0, None))
    figure.legend(*two[0].get_legend_handles_labels(), loc="outside lower center", ncols=2)


@plot("Entropy of random heads by rule for the scale")
def rules(figure: Any, drawn: Drawn, _: Tables) -> None:
    axes, table = figure.subplots(), drawn[0][1]
    d_k = [number(name) for name in table.columns[1:]]
    for i, (rule, *entropies) in enumerate(table.rows):
        dash, colour = "-o" if i < len(SERIES) else "--o", SERIES[i % len(SERIES)]
        axes.plot(d_k, list(map(number, entropies)), dash, ms=3, lw=1.2, color=colour, label=rule)
    axes.set(xscale="log", xlabel="d_k", ylabel="entropy, nats", title=drawn[0][0], ylim=(0, None))
    figure.legend(loc="outside right center")


@plot("A query and a key, three positions apart")
def offsets(figure: Any, drawn: Drawn, _: Tables) -> None:
    axes = figure.subplots()
    lines(axes, drawn, "query m", "measured")
    low, high = axes.get_ylim()
    room = max(abs(low), abs(high)) * 0.2  # rounding is not to fill the picture
    axes.set(xscale="symlog", xlim=(-0.3, None), ylim=(low - room, high + room), ylabel="score",
             xlabel="position of the query, key three further on")  # fmt: skip
    legend(axes, drawn)


@plot("Score of one query and key by offset")
def falling(figure: Any, drawn: Drawn, _: Tables) -> None:
    axes = figure.subplots()
    axes.axhline(0, color=INK, lw=0.6, ls=":")
    lines(axes, drawn, "offset", "measured")
    axes.set(xscale="symlog", xlim=(-0.1, None), xlabel="offset, positions", ylabel="score, over d_head")
    legend(axes, drawn)


@plot("Four random heads on 12 tokens")
def spreads(figure: Any, drawn: Drawn, _: Tables) -> None:
    axes, table = figure.subplots(), drawn[0][1]
    bars(axes, [f"head {h}" for h in column(table, "head")],
         {"document": numbers(table, "document"), "measured": numbers(table, "spread")})  # fmt: skip
    axes.set(ylabel="spread of the weights, nats")


@plot("The causal mask of six tokens and the weights it leaves")
def mask(figure: Any, drawn: Drawn, _: Tables) -> None:
    table = drawn[0][1]
    seen: list[list[Any]]
    seen = [["inf" not in part for part in str(row).split()] for row in column(table, "mask")]
    weights = [[number(part) for part in str(row).split()] for row in column(table, "weights")]
    for axes, grid, said in zip(
        figure.subplots(1, 2), (seen, weights), ("visible keys", "weights"), strict=True
    ):
        shaded(axes, grid)
        axes.set(title=said, xlabel="key", ylabel="query")


@plot("Weights of four random heads on 12 tokens")
def heads(figure: Any, drawn: Drawn, _: Tables) -> None:
    table = drawn[0][1]
    by_head: dict[Any, list[list[float]]] = {}
    for head, row in zip(column(table, "head"), column(table, "weights of the keys"), strict=True):
        by_head.setdefault(head, []).append([number(part) for part in str(row).split()])
    for axes, (head, grid) in zip(figure.subplots(1, len(by_head)), by_head.items(), strict=True):
        shaded(axes, grid)
        axes.set(title=f"head {head}", xlabel="key")
    figure.axes[0].set(ylabel="query")


def shaded(axes: Any, grid: list[list[Any]]) -> None:
    """A square of numbers from 0 to 1, the first row on top."""
    for i, row in enumerate(grid):
        for j, value in enumerate(row):
            axes.bar(j, 0.92, 0.92, i - 0.46, color=SERIES[0], alpha=float(value))
    n = len(grid) - 0.5
    axes.set(aspect="equal", xlim=(-0.5, n), ylim=(n, -0.5))


@plot("One token changed")
def probe(figure: Any, drawn: Drawn, _: Tables) -> None:
    axes, table = figure.subplots(), drawn[0][1]
    axes.bar(
        [str(v) for v in column(table, "position")],
        numbers(table, "largest change in its scores"),
        color=SERIES[0],
    )
    axes.set(xlabel="position", ylabel="largest change of its scores")


@plot("FLOPs of one attention layer at 1,024 tokens, 32 heads")
def layer(figure: Any, drawn: Drawn, _: Tables) -> None:
    axes, table = figure.subplots(), drawn[0][1]
    sums = ("total", "q k^T and weights v")
    steps = {
        f"{step}, {share}": flops / 1e9
        for step, flops, share in zip(
            column(table, "step"), numbers(table, "FLOPs"), column(table, "share"), strict=True
        )
        if step not in sums
    }
    axes.barh(list(steps), list(steps.values()), color=SERIES[0])
    axes.invert_yaxis()
    axes.set(xlabel="GFLOP")


@plot("16-bit cache of 32 layers with heads of 128")
def cache(figure: Any, drawn: Drawn, _: Tables) -> None:
    axes, table = figure.subplots(), drawn[0][1]
    tokens = {"a token": 1, "4,096 tokens": 4096, "8,192 tokens": 8192}
    for i, name in enumerate(column(table, "")):
        y = [numbers(table, at)[i] / 2**30 for at in tokens]
        axes.plot(list(tokens.values()), y, marker="o", ms=3, color=SERIES[i], label=name)
    axes.set(xlabel="tokens held", ylabel="cache, GiB")
    axes.legend()


@plot("What a pass does with each byte of one layer's weights")
def roofline(figure: Any, drawn: Drawn, tables: Tables) -> None:
    axes, table = figure.subplots(), drawn[0][1]
    cards = next(iter(tables["Two cards"].values()))
    at = numbers(table, "FLOP/byte")
    roofs = zip(column(cards, "card"), numbers(cards, "bandwidth"), numbers(cards, "BF16"), strict=True)
    fastest = {name: (band, peak) for name, band, peak in sorted(roofs, key=lambda roof: roof[1])}
    for (name, (band, peak)), colour in zip(fastest.items(), SERIES, strict=False):
        intensity = [min(at) / 2, peak / band, max(*at, peak / band) * 4]
        reached = [min(x * band, peak) / 1e12 for x in intensity]
        axes.plot(intensity, reached, color=colour, lw=1.2, label=name)
    for x, name in zip(at, column(table, "pass"), strict=True):
        axes.axvline(x, color=INK, lw=0.6, ls=":")
        place = {"xycoords": ("data", "axes fraction"), "rotation": 90, "fontsize": 7, "ha": "right"}
        axes.annotate(name, (x, 0.03), **place)
    axes.set(xscale="log", yscale="log", xlabel="FLOP for each byte of weights", ylabel="TFLOP/s at most")
    axes.legend()


@plot("Training state of Llama-3-8B")
def state(figure: Any, drawn: Drawn, tables: Tables) -> None:
    axes, table = figure.subplots(), drawn[0][1]
    card = number(
        next(title for title in tables if title.startswith("Training state against one")).split("one ")[1]
    )
    start = 0.0
    for i, (name, size) in enumerate(zip(column(table, "what"), numbers(table, "measured"), strict=True)):
        axes.barh(0, size / 1e9, left=start, color=SERIES[i % 5], label=name)
        start += size / 1e9
    axes.axvline(card / 1e9, color=INK, ls="--", lw=1)
    axes.annotate(
        "one card", (card / 1e9, 0.97), xycoords=("data", "axes fraction"), ha="right", va="top", rotation=90
    )
    axes.set(xlabel="GB", yticks=[], ylim=(-0.5, 1.1))
    figure.legend(loc="outside lower center", ncols=3)


@plot("Rates of RoPE's planes, d_head 128, base 10,000")
def rates(figure: Any, drawn: Drawn, _: Tables) -> None:
    axes = figure.subplots()
    lines(axes, drawn, "plane", "rate")
    axes.set(yscale="log", xlabel="plane", ylabel="radians a position")
    legend(axes, drawn)


@plot("New angles past 4,096 positions, d_head 128, base 10,000")
def unseen(figure: Any, drawn: Drawn, _: Tables) -> None:
    axes, table = figure.subplots(), drawn[0][1]
    groups = zip(column(table, "turned in training"), column(table, "planes"), strict=True)
    best, worst = numbers(table, "nearest angle: best, rad"), numbers(table, "worst, rad")
    bars(
        axes,
        [f"{turned}\n{planes} planes" for turned, planes in groups],
        {"best plane": best, "worst": worst},
    )
    axes.set(yscale="log", ylabel="new angle's distance from\nany trained one, radians")


def bars(axes: Any, names: list[str], series: dict[str, list[float]]) -> None:
    """Groups of bars side by side."""
    width = 0.8 / len(series)
    for i, (label, values) in enumerate(series.items()):
        at = [j + (i - (len(series) - 1) / 2) * width for j in range(len(names))]
        axes.bar(at, values, width * 0.95, color=SERIES[i], label=label)
    axes.set_xticks(range(len(names)), names)
    axes.legend()
