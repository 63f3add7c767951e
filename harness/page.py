"""python -m harness.page OUT.html A.jsonl [B.jsonl ...]: one self-contained page from verdict files.

OUT.md gives the Markdown summary instead. The page is HTML as it stands: its script only filters, switches
the theme and opens what a link names, and a content policy lets no other script run and nothing load.
"""

import sys
from collections import Counter
from importlib.util import find_spec
from pathlib import Path

from harness import markdown, plots
from harness.found import Column, Found, find, together, topic_of
from harness.load import Unusable
from harness.markup import CLASSES, ORDER, Html, anchor, document, folded, joined, permalink, sign, tag
from harness.receipts import Table, cell
from harness.runs import FAILING, Line, Run, excess, figures, read, where
from harness.verdicts import ERROR, KNOWN, NOT_OFFERED

SHOWN = 8  # broken claims of an implementation before the rest is folded


# --- what ran -----------------------------------------------------------------------------------------


def what_ran(run: Run) -> Html:
    header, options, tally = run.header, run.header["options"], run.footer["counts"]
    facts = {
        "run": f"{header['started'].replace('T', ' ').replace('+00:00', ' UTC')}",
        "device": ", ".join(f"{name} ({maker})" for name, maker in header["devices"].items()),
        "dtype": ", ".join(options.get("dtype", ())),
        "versions": ", ".join(f"{n} {v}" for n, v in {"spec": header["spec"], **header["versions"]}.items()),
        "selected": options.get("keyword"),
        "seed": options.get("seed"),
        "seeds": options.get("seeds") if options.get("seeds") != 1 else None,
        "verdicts": [tag("span", sign(v), f" {tally[v]} {v}", class_="count") for v in ORDER if tally.get(v)],
    }
    said = [joined(tag("dt", name), tag("dd", value)) for name, value in facts.items() if value]
    return tag("dl", said, class_="facts")


# --- what an implementation breaks --------------------------------------------------------------------


def card(found: Found, impl: str) -> Html:
    """One implementation: what it is, how many verdicts of each kind, and what it breaks, by how much."""
    own = [pair for id in in_order(found) for pair in found.verdicts.get(id, []) if pair[1]["impl"] == impl]
    tally = Counter(v["verdict"] for _, v in own)
    broken = [pair for pair in own if pair[1]["verdict"] in FAILING]
    known = [pair for pair in own if pair[1]["verdict"] == KNOWN]
    counts = [tag("span", sign(v), f" {tally[v]} {v}", class_="count") for v in ORDER if tally[v]]
    return tag(
        "article",
        tag("h3", found.short[impl], " ", tag("code", impl) if found.short[impl] != impl else None),
        rests_on(found, impl),
        tag("p", counts),
        breaks(found, broken) if broken else tag("p", tag("strong", "Nothing that was judged breaks.")),
        folded(f"{len(known)} known breaks", breaks(found, known)) if known else None,
        declined([v for _, v in own]),
        class_="card",
        data_impl=impl,
    )


def in_order(found: Found) -> list[str]:
    """Claims by topic, as the documents have them."""
    tested = [id for id, claim in found.claims.items() if claim["status"] != "cited"]
    topics = {topic: i for i, topic in enumerate(found.topics())}
    return sorted(tested, key=lambda id: topics[topic_of(id)])


def rests_on(found: Found, impl: str) -> Html | None:
    """What the implementation says of itself."""
    said = [run.header["implementations"].get(impl) for run in found.runs]
    first, *others = next(filter(None, said), "").split("\n\n")
    more = folded("what its verdicts rest on", [tag("p", part) for part in others]) if others else None
    return joined(tag("p", first), more) if first else None


def breaks(found: Found, pairs: list[tuple[str, Line]]) -> Html:
    """A list of broken claims, the first ones in sight."""
    items = [broken_claim(found, run, line) for run, line in pairs]
    rest = tag("ul", items[SHOWN:], class_="list")
    more = folded(f"and {len(items) - SHOWN} more", rest) if len(items) > SHOWN else None
    return joined(tag("ul", items[:SHOWN], class_="list"), more)


def broken_claim(found: Found, run: str, line: Line) -> Html:
    id = line["claim"]
    place = found.who(run, line).rpartition(" on ")[2] + composed(line)
    name = joined(sign(line["verdict"]), " ", tag("a", id, href=permalink(id)), " ", quiet(place))
    return tag("li", name, tag("div", found.claims[id]["statement"]), outcome(line))


def badge(word: str) -> Html:
    return tag("i", word, class_="badge")


def quiet(*said: object) -> Html:
    return tag("span", *said, class_="quiet")


def composed(line: Line) -> str:
    return ", composed with the reference" if line["composed"] else ""


def outcome(line: Line) -> Html:
    """The figures in words and how far past what is allowed; an error's own words as they came."""
    said, past = figures(line), excess(line)
    if line["verdict"] == ERROR or "\n" in said:
        return tag("pre", said or "no figure")
    reason = tag("div", line["detail"]) if line["verdict"] == KNOWN and said != line["detail"] else None
    return tag(
        "div", said, joined("; off by ", tag("strong", past)) if past else None, reason, class_="figures"
    )


def declined(own: list[Line]) -> Html | None:
    """What it was not judged on, by reason."""
    reasons = Counter(v["detail"] for v in own if v["verdict"] == NOT_OFFERED)
    items = [tag("li", f"{why} ({n} claim{'s' * (n > 1)})") for why, n in reasons.most_common()]
    return folded(f"{sum(reasons.values())} not offered", tag("ul", items)) if reasons else None


# --- the matrix ---------------------------------------------------------------------------------------


def head(found: Found) -> Html:
    """The columns' names, which stay in sight."""
    several = len({column.device for column in found.columns}) > 1
    marks = []
    for c in found.columns:
        words = (c.device if several else "", found.short[c.impl], f"({c.run})" if c.run else "")
        name = " ".join(filter(None, words))
        marks.append(tag("span", tag("span", name), class_="cell", title=name))
    return tag("div", tag("span", "claim"), tag("span", marks, class_="cells"), class_="row head")


def cells(found: Found, claim: str) -> Html:
    """One cell a column; a claim that judges no implementation has one for all."""
    here = found.verdicts.get(claim, [])
    alone = [line for _, line in here if not line["impl"]]
    if alone:
        places = ", ".join(dict.fromkeys(map(where, alone)))
        return tag(
            "span", tag("span", list(map(signed, alone)), " ", quiet(places), class_="all"), class_="cells"
        )
    return tag(
        "span", [tag("span", within(found, c, here), class_="cell") for c in found.columns], class_="cells"
    )


def within(found: Found, column: Column, here: list[tuple[str, Line]]) -> list[Html]:
    """A column's verdicts on a claim. What is counted on meta stands in its implementation's first column."""
    first = next(c for c in found.columns if c.impl == column.impl and c.run == column.run) == column
    devices = (column.device, "meta") if first else (column.device,)
    return [
        signed(line)
        for run, line in here
        if line["impl"] == column.impl and line["device"] in devices and column.run in ("", run)
    ]


def signed(line: Line) -> Html:
    who = f"{line['impl']} on " if line["impl"] else ""
    said = f"{who}{where(line)}: {line['verdict']}{composed(line)}"
    return sign(line["verdict"], title=said, data_impl=line["impl"], data_v=CLASSES[line["verdict"]])


def matrix(found: Found) -> list[Html]:
    """A section a topic, a row a claim."""
    drawn: dict[str, str] = {}
    sections = []
    for topic in found.topics():
        ids = [id for id in in_order(found) if topic_of(id) == topic]
        about = next((found.claims[id]["about"] for id in ids if found.claims[id]["about"]), "")
        parts = [tag("h3", topic), tag("p", about, class_="about") if about else None]
        sections.append(tag("section", parts, [claim(found, id, drawn) for id in ids], data_topic=topic))
    return sections


def claim(found: Found, id: str, drawn: dict[str, str]) -> Html:
    """A row of the matrix; opened, everything behind it."""
    said = found.claims[id]
    erratum = said["status"] == "erratum"
    row = tag(
        "span",
        tag("span", tag("b", id), badge("erratum") if erratum else None, tag("span", said["statement"])),
        cells(found, id),
        class_="row",
    )
    source = f"Source: {said['source']}. Judges {' and '.join(said['needs']) or 'no implementation'}. "
    inside = [
        tag("p", tag("strong", "Erratum: "), said["erratum"], class_="erratum") if erratum else None,
        *(tag("p", part) for part in said["why"].splitlines()),
        tag("p", source, tag("a", "link to this claim", href=permalink(id)), class_="quiet"),
        judged(found, id),
        *receipts(found, id, drawn),
    ]
    mark = "yes" if erratum else None
    return folded(row, tag("div", inside, class_="inside"), class_="claim", id=anchor(id), data_erratum=mark)


def judged(found: Found, id: str) -> Html:
    """Every verdict on a claim with its figures; those that came out alike together."""
    alike: dict[tuple[int, Html], list[str]] = {}
    for run, line in found.verdicts.get(id, []):
        ran, counted = line["cases"]["run"], line["cases"]["judged"]
        cases = f", {counted} of {ran} cases" if counted < ran and counted else f", {ran} cases" * (ran > 1)
        said = joined(quiet(line["verdict"], composed(line), cases), outcome(line))
        alike.setdefault((ORDER.index(line["verdict"]), said), []).append(found.who(run, line))
    items = [
        tag("li", sign(ORDER[order]), " ", tag("b", together(who)), " ", said)
        for (order, said), who in sorted(alike.items(), key=lambda item: item[0][0])
    ]
    return tag("ul", items, class_="list")


def cited(found: Found) -> Html | None:
    """Statements that rest on literature: listed, never counted as tested."""
    items = [
        tag("li", tag("b", c["id"]), badge("cited"), f" {c['statement']} ", quiet(c["source"]), id=anchor(id))
        for id, c in found.claims.items()
        if c["status"] == "cited"
    ]
    title = f"Cited from literature, not tested: {len(items)}"
    return folded(title, tag("ul", items), id="cited") if items else None


# --- receipts -----------------------------------------------------------------------------------------


def receipts(found: Found, id: str, drawn: dict[str, str]) -> list[Html]:
    """A claim's tables; a plot stands where its table comes first."""
    parts = []
    for title, by_who in found.tables.get(id, {}).items():
        first = title not in drawn
        picture = plots.svg(title, found.all_tables()) if first else ""
        if first:
            drawn[title] = id if picture else ""
        if picture:
            parts.append(tag("figure", Html(picture)))
        elif drawn[title]:
            parts.append(tag("p", "Plotted at ", tag("a", drawn[title], href=permalink(drawn[title]))))
        parts.append(measured(plots.distinct(by_who)))
    return parts


def measured(tables: list[tuple[list[str], Table]]) -> Html:
    """A receipt: the first table, and those that differ from it, with what differs marked."""
    (names, first), *others = tables
    rest = [folded(f"{together(who)} measured otherwise", printed(table, first)) for who, table in others]
    return joined(
        tag("h4", first.title), printed(first, first), tag("p", quiet(f"measured on {together(names)}")), rest
    )


def printed(table: Table, other: Table) -> Html:
    rows = []
    for i, row in enumerate(table.rows):
        same = [cell(value) for value in other.rows[i]] if i < len(other.rows) else []
        data = []
        for j, (value, name) in enumerate(zip(row, table.columns, strict=False)):
            text = cell(value)
            marked = text if same[j : j + 1] == [text] else tag("mark", text)
            kind = None if isinstance(value, str) else "number"
            data.append(tag("td", marked, data_label=name, class_=kind))
        rows.append(tag("tr", data))
    names = tag("thead", tag("tr", [tag("th", name) for name in table.columns]))
    note = tag("p", quiet(table.note)) if table.note else None
    return joined(
        tag("table", names, tag("tbody", rows), class_="wide" if len(table.columns) > 4 else None), note
    )


# --- the page -----------------------------------------------------------------------------------------


def choices(name: str, label: str, options: dict[str, str]) -> Html:
    found = [tag("option", said, value=value) for value, said in options.items()]
    return tag("label", label, " ", tag("select", found, id=name))


def controls(found: Found) -> Html:
    kinds = {"": "any", "breaks error": "breaks or errs", "known": "breaks (known)", "holds": "holds",
             "none": "not offered", "erratum": "erratum"}  # fmt: skip
    return tag(
        "form",
        choices("topic", "topic", {"": "all", **{topic: topic for topic in found.topics()}}),
        choices("verdict", "verdict", kinds),
        choices("impl", "implementation", {"": "any", **found.short}),
        tag("label", "words ", Html('<input id="words" type="search">')),
        tag("output", id="shown"),
        id="controls",
        hidden="",
    )


def page(runs: list[Run]) -> str:
    """The whole page."""
    found = find(runs)
    broken = {v["impl"] for here in found.verdicts.values() for _, v in here if v["verdict"] in FAILING}
    lead = (
        f"{len(broken & set(found.impls))} of {len(found.impls)} implementations break something; "
        f"{len(in_order(found))} claims."
    )
    no_plots = "Plots are left out: matplotlib is not installed here (pip install -e '.[report]')."
    body = joined(
        tag(
            "header",
            tag("h1", "Transformer spec: verdicts"),
            tag("button", "light or dark", id="theme", hidden=""),
        ),
        tag("p", lead, class_="lead"),
        list(map(what_ran, runs)),
        None if find_spec("matplotlib") else tag("p", quiet(no_plots)),
        tag("h2", "What each implementation breaks, and by how much"),
        tag("div", [card(found, impl) for impl in found.impls], class_="cards"),
        tag("h2", "Every claim"),
        tag("p", [tag("span", sign(verdict), f" {verdict}", class_="count") for verdict in ORDER]),
        tag("p", "Open a claim for its figures, its source, and the tables behind it."),
        controls(found),
        tag("div", head(found), matrix(found), cited(found), id="matrix", style=f"--n: {len(found.columns)}"),
    )
    return document(body)


def write(path: str, runs: list[Run]) -> int:
    """Write a page, or a Markdown summary for a path that ends in .md; the number of bytes."""
    text = markdown.summary(runs) if path.endswith(".md") else page(runs)
    return Path(path).write_bytes(text.encode("utf-8", "replace"))


def main(arguments: list[str]) -> int:
    """Exit status 0, or 2 with one line where an argument cannot be used."""
    try:
        if len(arguments) < 2 or not arguments[0].endswith((".html", ".md")):
            raise Unusable(
                "give OUT.html or OUT.md, then one verdict file or more (pytest --verdicts=A.jsonl)"
            )
        size = write(arguments[0], [read(path) for path in arguments[1:]])
    except (Unusable, OSError) as error:
        wrong = (
            f"{arguments[0]}: {error.strerror}; give a path that can be written"
            if isinstance(error, OSError)
            else error
        )
        print(f"harness.page: {wrong}", file=sys.stderr)
        return 2
    print(f"{arguments[0]}: {size / 1e6:.2f} MB")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
