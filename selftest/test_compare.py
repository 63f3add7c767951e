"""What changed between runs: broke, healed, moved; and files that cannot be compared."""

import json

import pytest

from harness import compare, page
from harness.report import SCHEMA

HEADER = {
    "kind": "header",
    "schema": SCHEMA,
    "spec": "1",
    "versions": {"torch": "2.13"},
    "devices": {"cpu": "Acme"},
    "implementations": {"mine": ""},
    "options": {},
    "started": "2026-01-01T00:00:00+00:00",
}
FOOTER = {"kind": "footer", "counts": {}, "exit_status": 0}


def claim_line(id):
    empty = dict.fromkeys(("erratum", "why", "about"), "")
    return {"kind": "claim", "id": id, "statement": f"{id} is so.", "source": "toy", "needs": ["rope"],
            "status": "tested", **empty}  # fmt: skip


def verdict_line(verdict, id="rope.rates", **other):
    place = {"claim": id, "impl": "mine", "device": "cpu", "dtype": "float32"}
    figures = {"what": "rate", "measured": 1.0, "expected": "1.0 within 0.01", "strain": 0.5, "detail": ""}
    cases = {"composed": False, "cases": {"run": 1, "judged": 1}, "seconds": 0.1}
    return {"kind": "verdict", "verdict": verdict, **place, **figures, **cases, **other}


@pytest.fixture
def file(tmp_path):
    """file("a", verdicts...) writes a verdict file and gives its path."""

    def write(name, *verdicts, header=HEADER, footer=(FOOTER,)):
        claims = [claim_line(id) for id in dict.fromkeys(v["claim"] for v in verdicts)]
        path = tmp_path / f"{name}.jsonl"
        path.write_text("".join(json.dumps(line) + "\n" for line in [header, *claims, *verdicts, *footer]))
        return str(path)

    return write


def test_two_equal_runs_differ_in_nothing(file, capsys):
    same = verdict_line("holds")
    assert compare.main([file("a", same), file("b", same)]) == 0
    assert "1 verdict compared: nothing changed" in capsys.readouterr().out


@pytest.mark.parametrize(
    "was, now, says, status",
    [
        ("holds", "BREAKS", "newly breaks", 1),
        ("holds", "error", "newly breaks", 1),
        ("not offered", "BREAKS", "newly breaks", 1),
        ("breaks (known)", "BREAKS", "newly breaks", 1),
        ("BREAKS", "holds", "healed", 0),
        ("error", "holds", "healed", 0),
        ("breaks (known)", "holds", "healed", 0),
        ("BREAKS", "breaks (known)", "known to break now", 0),
        ("holds", "breaks (known)", "known to break now", 0),
        ("holds", "not offered", "no longer offered", 0),
        ("BREAKS", "not offered", "no longer offered", 0),
        ("not offered", "holds", "offered now", 0),
        ("BREAKS", "BREAKS", "nothing changed", 0),
        ("BREAKS", "error", "nothing changed", 0),
    ],
)
def test_a_change_of_verdict_has_a_name_and_only_a_new_break_fails(file, capsys, was, now, says, status):
    assert compare.main([file("a", verdict_line(was)), file("b", verdict_line(now))]) == status
    assert says in capsys.readouterr().out


@pytest.mark.parametrize(
    "after, moves",
    [
        ({"measured": 1.015}, True),
        ({"measured": 1.005}, False),
        ({"measured": 1.015, "what": "another element"}, False),
        ({"measured": float("nan")}, False),
        ({"measured": "equal"}, False),
        ({"measured": 1.5, "expected": "1.5 within 0.01"}, False),
    ],
)
def test_a_figure_that_moves_by_more_than_its_tolerance_is_named(file, capsys, after, moves):
    assert compare.main([file("a", verdict_line("holds")), file("b", verdict_line("holds", **after))]) == 0
    assert ("moved by more" in capsys.readouterr().out) == moves


@pytest.mark.parametrize("now, moves", [(1.4, False), (1.9, True)])
def test_a_figure_in_a_band_may_move_by_half_its_width(file, capsys, now, moves):
    band = {"expected": "1.0 to 2.0", "measured": 1.2}
    files = (
        file("a", verdict_line("holds", **band)),
        file("b", verdict_line("holds", **band | {"measured": now})),
    )
    assert compare.main(list(files)) == 0
    assert ("moved by more" in capsys.readouterr().out) == moves


@pytest.mark.parametrize("field, new", [("impl", "faster"), ("device", "cuda"), ("dtype", "bfloat16")])
def test_the_only_implementation_device_or_dtype_is_compared_by_any_name(file, capsys, field, new):
    fixed = verdict_line("holds", "cost.params", device="meta", dtype="")
    then = [verdict_line("holds"), fixed]
    now = [verdict_line("BREAKS", **{field: new}), fixed | {"impl": new if field == "impl" else "mine"}]
    assert compare.main([file("a", *then), file("b", *now)]) == 1
    said = capsys.readouterr().out
    assert "2 verdicts compared: 1 newly breaks" in said
    assert f"-> {new}" in said


def test_where_there_are_several_only_equal_names_are_compared(file, capsys):
    one, two = verdict_line("holds"), verdict_line("BREAKS", impl="other")
    assert compare.main([file("a", one), file("b", one, two)]) == 0
    assert "1 verdict compared: nothing changed\n0 only in" in capsys.readouterr().out


def test_a_new_claim_that_breaks_is_a_new_break(file, capsys):
    one, two = verdict_line("holds"), verdict_line("BREAKS", "rope.new")
    assert compare.main([file("a", one), file("b", one, two)]) == 1
    assert "rope.new  mine on cpu float32: a new claim -> BREAKS" in capsys.readouterr().out


def test_each_later_run_is_compared_with_the_first_and_versions_are_told(file, capsys):
    good, bad = verdict_line("holds"), verdict_line("BREAKS", measured=7.0)
    newer = HEADER | {"versions": {"torch": "2.14"}}
    assert compare.main([file("a", good), file("b", good, header=newer), file("c", bad)]) == 1
    said = capsys.readouterr().out
    assert said.count(".jsonl -> ") == 2
    assert "torch 2.13 -> 2.14" in said
    assert "was: rate: measured 1.0, expected 1.0 within 0.01" in said
    assert "is: rate: measured 7.0" in said


def unusable(tmp_path):
    """name -> the text of a file that cannot be used, and what is said of it"""
    lines = [json.dumps(x) for x in (HEADER, claim_line("rope.rates"), verdict_line("holds"), FOOTER)]
    return {
        "empty": ("", "does not begin with a header"),
        "words": ("hello\n", "line 1 is not JSON"),
        "list": ("[1]\n", "of no known kind"),
        "cut": ("\n".join(lines[:-1]), "has no footer, so its run did not finish"),
        "torn": ("\n".join(lines)[:-9], "line 4 is not JSON"),
        "headless": ("\n".join(lines[1:]), "does not begin with a header"),
        "newer": ("\n".join([json.dumps(HEADER | {"schema": 99}), *lines[1:]]), "has schema 99, expected 1"),
        "claimless": ("\n".join([lines[0], *lines[2:]]), "judges rope.rates without a line"),
        "short": ("\n".join([lines[0], '{"kind": "claim"}', lines[-1]]), "a claim has no 'id'"),
        "typed": (lines[0].replace('"1"', "1") + "\n" + lines[-1], "spec is '1', expected string"),
        "odd": ("\n".join(lines).replace('"holds"', '"fine"'), "expected holds or BREAKS or error"),
        "deep": ("[" * 100_000, "line 1 is "),
        "binary": (None, "not UTF-8"),
        "absent": (..., "No such file"),
    }


@pytest.mark.parametrize("name", unusable(None))
@pytest.mark.parametrize("command", ["compare", "page"])
def test_a_file_that_cannot_be_used_is_one_line_and_status_2(tmp_path, file, capsys, name, command):
    text, says = unusable(tmp_path)[name]
    path = tmp_path / f"{name}.jsonl"
    if text is not ...:
        path.write_bytes(b"\xff\xfe\x00" if text is None else text.encode())
    good = file("good", verdict_line("holds"))
    run, first = (compare.main, good) if command == "compare" else (page.main, str(tmp_path / "out.html"))
    assert run([first, str(path)]) == 2
    out, err = capsys.readouterr()
    assert says in err
    assert err.count("\n") == 1
    assert out == ""


def test_runs_that_share_nothing_cannot_be_compared(file, capsys):
    assert (
        compare.main([file("a", verdict_line("holds")), file("b", verdict_line("holds", "rope.other"))]) == 2
    )
    assert "share no verdict" in capsys.readouterr().err


@pytest.mark.parametrize("arguments", [[], ["a.jsonl"], ["--help", "a.jsonl"]])
def test_too_few_files_is_one_line_and_status_2(capsys, arguments):
    assert compare.main(arguments) == 2
    assert "two verdict files or more" in capsys.readouterr().err
