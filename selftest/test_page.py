"""The page and the Markdown summary: complete, well formed, closed to whatever an implementation says.

Everything here reads the HTML itself; selftest/test_browser.py opens it in a browser.
"""

import base64
import hashlib
import importlib.util
import json
import re
import xml.etree.ElementTree
from html.parser import HTMLParser

import pytest

from harness import markup, page, plots
from harness.found import find
from harness.receipts import Table
from harness.runs import read as read_run
from selftest.toy import ATTENTION, ROOT, SPEC, Toy

pytest_plugins = "pytester"

RECEIPT = '''
from harness import Table

@claim("attention.sum", needs="attention", source="toy", erratum="the toy says 2")
@pytest.mark.parametrize("n", [1, 2])
def test_sum(impl, device, receipt, n):
    """Equal scores weigh equally.

    Whoever reads this learns why.
    """
    out = float(impl.attention(*(torch.ones(1, 1, 3, 4, device=device) for _ in range(3))).sum())
    receipt(Table("Sums <of> ones", ("n", "measured"), ((3, out), ("a & b", "1 < 2"))))
    close(out, 12.0, 1e-3, "sum")
'''
NASTY = (
    "</script><script>alert(1)</script><img src=//evil.example onerror=alert(2)>"
    "\"'&`|*[x](//evil.example) @you"
)
NASTY_FILE = "<img src=x onerror=alert(3)>"
VOID = {"meta", "link", "input", "br"}


class Parsed(HTMLParser):
    """The page's elements, with a complaint about any that is not closed where it should be."""

    def __init__(self, text):
        super().__init__()
        self.open, self.wrong, self.elements, self.texts = [], [], [], []
        self.feed(text)
        self.close()

    def handle_starttag(self, tag, attrs):
        self.elements.append((tag, dict(attrs)))
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag, attrs):
        self.elements.append((tag, dict(attrs)))

    def handle_endtag(self, tag):
        if tag not in VOID and (not self.open or self.open.pop() != tag):
            self.wrong.append((tag, self.getpos()))

    def handle_data(self, data):
        self.texts.append(data)


@pytest.fixture
def toy(pytester):
    toy = Toy(pytester)
    toy.spec(SPEC + RECEIPT)
    return toy


def read(toy, name="out.html"):
    return (toy.pytester.path / name).read_text(encoding="utf-8")


def wrong(times):
    return ATTENTION.replace("** -0.5", "** -0.6").replace(
        "return s.softmax(-1)", f"return {times} * s.softmax(-1)"
    )


def hostile(toy):
    """An implementation whose name, docstring and exceptions are all markup."""
    text = f"{NASTY!r}\n" + ATTENTION.replace("    g =", f"    raise ValueError({NASTY!r})\n    g =")
    return toy.impl(text, NASTY_FILE)


def closed(text):
    """Well formed, one script whose digest the policy names, and nothing that loads or runs besides."""
    found = Parsed(text)
    assert (found.wrong, found.open) == ([], [])
    assert [tag for tag, _ in found.elements].count("script") == 1
    script = text[text.index("<script>") + 8 : text.index("</script>")]
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    policy = next(a["content"] for tag, a in found.elements if a.get("http-equiv"))
    assert f"default-src 'none'; style-src 'unsafe-inline'; script-src 'sha256-{digest}'" in policy
    for tag, attributes in found.elements:
        assert tag not in ("img", "iframe", "object", "embed", "base", "video", "audio"), tag
        assert not [name for name in attributes if name.startswith("on") or name in ("src", "action")], (
            attributes
        )
        for name in ("href", "xlink:href"):
            assert attributes.get(name, "#").startswith(("#", "data:,")), attributes
    assert "url(http" not in text
    assert "@import" not in text
    ids = [a["id"] for _, a in found.elements if "id" in a and tag != "svg"]
    assert len(ids) == len(set(ids))
    return found


def test_a_page_shows_every_claim_verdict_receipt_and_reason(toy):
    result = toy(toy.impl(wrong(2)), "--impl=refimpl", "--report=out.html")
    assert result.ret == 1
    result.stdout.fnmatch_lines(["out.html: *MB"])
    text = read(toy)
    found = closed(text)
    words = " ".join(found.texts)
    rows = {a["id"] for tag, a in found.elements if a.get("class") == "claim"}
    assert rows == {
        line["id"] for line in toy.lines() if line["kind"] == "claim" and line["status"] != "cited"
    }
    assert "1 of 2 implementations break something" in words
    assert "sum: measured 24.0, expected 12.0 within 0.001" in words
    assert "over 1000 times what is allowed" in words
    for said in ("Sums <of> ones", "measured otherwise", "Whoever reads this learns why.", "the toy says 2"):
        assert said in words
    cells = [a for _, a in found.elements if a.get("data-v")]
    assert len(cells) == sum(line["kind"] == "verdict" for line in toy.lines())


def test_a_page_is_the_same_from_one_process_two_workers_and_a_file(toy):
    mine = toy.impl(wrong(2))
    toy(mine, "--impl=refimpl", "--report=one.html", alone=True)
    toy(mine, "--impl=refimpl", "--report=two.html", "-n2", alone=True)
    assert page.main(["file.html", "out.jsonl"]) == 0
    texts = [
        re.sub(r"<dd>[\d-]+ [\d:]+ UTC</dd>", "", read(toy, f"{n}.html")) for n in ("one", "two", "file")
    ]
    assert texts[0] == texts[1] == texts[2]


def test_runs_in_several_dtypes_and_from_several_files_become_one_matrix(toy):
    toy(toy.impl(ATTENTION), "--dtype=float32,float64", "--verdicts=first.jsonl")
    toy("--impl=refimpl", "--dtype=bfloat16", "-k", "formula", "--verdicts=second.jsonl")
    assert page.main(["out.html", "first.jsonl", "second.jsonl"]) == 0
    found = closed(read(toy))
    heads = [a["title"] for tag, a in found.elements if a.get("class") == "cell" and "title" in a]
    assert heads == ["mine", "refimpl"]
    places = {a["title"] for _, a in found.elements if a.get("data-v")}
    assert {"mine on cpu float64: holds", "refimpl on cpu bfloat16: holds"} <= places


def test_two_runs_of_one_implementation_have_a_column_each(toy):
    toy("--impl=refimpl", "--verdicts=first.jsonl")
    toy("--impl=refimpl", "-k", "norm", "--verdicts=second.jsonl")
    assert page.main(["out.html", "first.jsonl", "second.jsonl"]) == 0
    found = closed(read(toy))
    heads = [a["title"] for tag, a in found.elements if a.get("class") == "cell" and "title" in a]
    assert heads == ["refimpl (first.jsonl)", "refimpl (second.jsonl)"]
    assert "refimpl on cpu float32 (first.jsonl), cpu float32 (second.jsonl)" in " ".join(found.texts)


def test_parts_of_a_run_by_topic_share_a_column(toy):
    toy("--impl=refimpl", "-k", "norm", "--verdicts=first.jsonl")
    toy("--impl=refimpl", "-k", "not norm", "--verdicts=second.jsonl")
    toy("--impl=refimpl", "--verdicts=whole.jsonl")
    assert page.main(["parts.html", "first.jsonl", "second.jsonl"]) == 0
    assert page.main(["whole.html", "whole.jsonl"]) == 0
    for name in ("parts", "whole"):
        found = closed(read(toy, f"{name}.html"))
        heads = [a["title"] for tag, a in found.elements if a.get("class") == "cell" and "title" in a]
        assert heads == ["refimpl"]
    marks = [
        sorted(a["title"] for _, a in closed(read(toy, f"{name}.html")).elements if a.get("data-v"))
        for name in ("parts", "whole")
    ]
    assert marks[0] == marks[1]


@pytest.mark.parametrize(
    "field, other",
    [
        ("versions", {"torch": "1.0"}),
        ("options", {"seed": 7}),
        ("options", {"dtype": ["float64"]}),
        ("devices", {"cpu": "another"}),
        ("spec", "0"),
    ],
)
def test_halves_of_unlike_runs_have_a_column_each(toy, field, other):
    toy("--impl=refimpl", "-k", "norm", "--verdicts=first.jsonl")
    toy("--impl=refimpl", "-k", "not norm")
    header, *rest = toy.lines()
    header[field] = header[field] | other if isinstance(other, dict) else other
    (toy.pytester.path / "second.jsonl").write_text("".join(json.dumps(x) + "\n" for x in [header, *rest]))
    runs = [read_run(str(toy.pytester.path / name)) for name in ("first.jsonl", "second.jsonl")]
    assert [column.run for column in find(runs).columns] == [run.name for run in runs]


@pytest.mark.parametrize(
    "field, other",
    [
        ("versions", {"jax": "1.0"}),
        ("options", {"impl": ["/elsewhere/refimpl"], "device": ["cpu", "cuda"]}),
        ("devices", {"cuda": "a card"}),
    ],
)
def test_what_else_a_part_ran_parts_no_column(toy, field, other):
    toy("--impl=refimpl", "-k", "norm", "--verdicts=first.jsonl")
    toy("--impl=refimpl", "-k", "not norm")
    header, *rest = toy.lines()
    header[field] |= other
    (toy.pytester.path / "second.jsonl").write_text("".join(json.dumps(x) + "\n" for x in [header, *rest]))
    runs = [read_run(str(toy.pytester.path / name)) for name in ("first.jsonl", "second.jsonl")]
    assert {column.run for column in find(runs).columns} == {""}


def test_a_hostile_implementation_stays_text(toy):
    result = toy(hostile(toy), "--report=out.html", "--report=out.md")
    assert result.ret == 1
    found = closed(read(toy))
    words = "".join(found.texts)
    assert NASTY_FILE in words
    assert NASTY in words
    summary = read(toy, "out.md")
    for markup_of_theirs in ("<img", "<script", "](", "@you", "`"):
        assert markup_of_theirs not in summary


def test_a_cited_statement_is_listed_apart_and_never_counted(toy):
    toy("--impl=refimpl")
    empty = dict.fromkeys(("erratum", "why", "about"), "")
    line = {"kind": "claim", "id": "rope.why", "statement": "Others say so.", "source": "[1]", "needs": []}
    lines = [*toy.lines()[:-1], line | {"status": "cited"} | empty, toy.lines()[-1]]
    (toy.pytester.path / "more.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    assert page.main(["out.html", "more.jsonl"]) == 0
    words = " ".join(closed(read(toy)).texts)
    assert re.search(r"Cited from literature, not tested: \d+", words)
    assert "Others say so." in words
    assert "6 claims." in words


def test_markup_escapes_text_and_attributes_and_keeps_html():
    assert markup.tag("a", "<&>", href='"x"', class_="y", hidden=None) == (
        '<a href="&quot;x&quot;" class="y">&lt;&amp;&gt;</a>'
    )
    assert markup.joined(markup.Html("<b>"), ["<", None]) == "<b>&lt;"


def test_the_summary_has_a_table_of_counts_and_one_of_what_breaks(toy):
    toy(toy.impl(wrong(2)), "--impl=refimpl", "--report=out.md")
    lines = read(toy, "out.md").splitlines()
    assert "| implementation | holds | BREAKS | error | breaks (known) | not offered |" in lines
    assert "| refimpl | 5 | 0 | 0 | 0 | 0 |" in lines
    assert any(line.startswith("## mine breaks ") for line in lines)
    assert any("Equal scores weigh equally." in line and "measured 24.0" in line for line in lines)
    for table in re.findall(r"(?:^\|.*\n)+", read(toy, "out.md"), flags=re.MULTILINE):
        assert len({row.count("|") for row in table.splitlines()}) == 1


def test_receipts_are_lines_of_the_verdict_file(toy):
    toy(toy.impl(wrong(2)), "--impl=refimpl")
    receipts = [line for line in toy.lines() if line["kind"] == "receipt"]
    assert [line["impl"] for line in receipts] == ["mine", "refimpl"]
    assert receipts[0]["rows"] == [[3, 24.0], ["a & b", "1 < 2"]]
    assert receipts[0]["claim"] == "attention.sum"


COUNTED = '''
from harness import Table

counted = []

def table():
    counted.append(1)
    return Table("Counted", ("n",), ((len(counted),),))

@claim("cost.once", needs=None, source="toy")
def test_once(receipt):
    """What is slow to count is counted once."""
    receipt(table())

@pytest.mark.receipts("cost")
def test_receipts(made):
    assert made("Counted", table).rows == ((1,),)
    with pytest.raises(ValueError, match="'Counted', not 'Other'"):
        made("Other", table)
'''


def test_a_receipts_test_takes_the_table_that_a_claim_has_counted(toy):
    toy.spec(SPEC + COUNTED)
    assert toy("--impl=refimpl").ret == 0


def test_a_receipt_of_two_claims_is_printed_once(toy):
    toy.spec(
        SPEC
        + RECEIPT
        + RECEIPT.replace("attention.sum", "attention.two")
        .replace("Equal", "The")
        .replace("test_s", "test_t")
    )
    toy("--receipts").stdout.fnmatch_lines(["[[]refimpl on cpu float32[]]"])
    assert toy("--receipts").stdout.str().count("Sums <of> ones") == 1


def test_junit_properties_are_the_claim_and_where_it_was_judged(toy):
    toy(toy.impl(wrong(2)), "--junitxml=out.xml")
    cases = xml.etree.ElementTree.parse(toy.pytester.path / "out.xml").getroot().iter("testcase")
    properties = [[(p.get("name"), p.get("value")) for p in case.iter("property")] for case in cases]
    assert properties[0] == [
        ("claim", "attention.formula"),
        ("impl", "mine"),
        ("device", "cpu"),
        ("dtype", "float32"),
    ]
    assert {len(found) for found in properties} == {4}


@pytest.mark.parametrize("path", ["out.txt", "no/such/folder.html", "html"])
def test_an_unusable_report_is_refused_in_one_line(toy, path):
    result = toy(f"--report={path}")
    assert result.ret == 4
    assert f"--report={path}: give PATH.html or PATH.md in an existing folder" in result.stderr.str()


def test_a_report_that_cannot_be_written_is_said_in_one_line(toy):
    toy.pytester.mkdir("taken.html")
    result = toy("--report=taken.html")
    assert result.ret == 4
    result.stdout.fnmatch_lines(["--report=taken.html: Is a directory; give a path that can be written"])
    assert "Traceback" not in result.stdout.str() + result.stderr.str()


def test_an_interrupted_run_writes_no_page(toy):
    mine = toy.impl(ATTENTION.replace("    g =", "    raise KeyboardInterrupt\n    g ="))
    assert toy(mine, "--report=out.html", alone=True).ret == 2
    assert not (toy.pytester.path / "out.html").exists()


@pytest.mark.parametrize("arguments", [[], ["out.html"], ["out.txt", "a.jsonl"], ["a.jsonl", "b.jsonl"]])
def test_the_command_says_what_it_needs(capsys, arguments):
    assert page.main(arguments) == 2
    assert "give OUT.html or OUT.md, then one verdict file or more" in capsys.readouterr().err


def test_without_matplotlib_the_page_says_that_plots_are_left_out(toy, monkeypatch):
    monkeypatch.setattr(page, "find_spec", lambda name: None)
    monkeypatch.setattr(plots, "find_spec", lambda name: None)
    toy("--report=out.html")
    assert "Plots are left out: matplotlib is not installed here" in read(toy)


def test_every_plot_is_of_a_receipt_that_the_spec_has():
    locked = "\n".join(path.read_text() for path in (ROOT / "spec" / "__snapshots__").rglob("*.txt"))
    assert [title for title in plots.PLOTS if title not in locked.splitlines()] == []


@pytest.mark.skipif(not importlib.util.find_spec("matplotlib"), reason="needs the report extra")
@pytest.mark.parametrize("name", ["mine", NASTY, "$\\frac{", "_hidden", "\N{SNOWMAN}"])
def test_a_plot_is_part_of_the_page_and_its_labels_stay_text(name):
    title = "A query and a key, three positions apart"
    table = Table(title, ("query m", "measured"), ((0, 1.0), (5, 1.0)))
    other = Table(title, ("query m", "measured"), ((0, 1.0), (5, 2.0)))
    svg = plots.svg(title, {title: {"refimpl on cpu float32": table, f"{name} on cpu float32": other}})
    found = Parsed(svg)
    assert (found.wrong, found.open) == ([], [])
    assert not {tag for tag, _ in found.elements} & {"script", "img", "image"}
    assert "currentColor" in svg
    assert "var(--s1)" in svg
    assert not re.search("#[0-9a-f]{6}", svg.replace("#" + "f" * 6, ""))
    if name != "_hidden":
        assert name[:8] in "".join(found.texts)


@pytest.mark.skipif(not importlib.util.find_spec("matplotlib"), reason="needs the report extra")
@pytest.mark.parametrize("value", ["words", float("nan"), float("inf"), None])
def test_a_receipt_that_cannot_be_drawn_has_no_plot(value):
    title = "A query and a key, three positions apart"
    table = Table(title, ("query m", "measured"), ((0, value), (5, 1.0)))
    assert plots.svg(title, {title: {"mine on cpu": table}}) == ""
    assert plots.svg(title, {title: {"mine on cpu": Table(title, ("x",), ())}}) == ""


@pytest.mark.parametrize(
    "cell, number",
    [
        (3, 3.0),
        (True, 1.0),
        ("16.06 GB", 16.06e9),
        ("1 GiB", 2.0**30),
        ("512 KiB", 2.0**19),
        ("< 1e-06", 1e-6),
        ("137.4 G", 137.4e9),
        ("2.039 TB/s", 2.039e12),
        ("989.4 TFLOP/s", 989.4e12),
        ("+7.0%", 7.0),
        ("1,024", 1024.0),
    ],
)
def test_cells_are_read_as_numbers_with_their_units(cell, number):
    assert plots.number(cell) == pytest.approx(number)
