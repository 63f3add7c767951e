"""The page of libraries: made from the runs of several environments, one table of all of them."""

import json
import re
import shutil
from pathlib import Path

import pytest

from harness import libraries
from harness.verdicts import KNOWN
from selftest.toy import ATTENTION, Toy

pytest_plugins = "pytester"
NO_SCALE = ATTENTION.replace("q.shape[-1] ** -0.5 if scale is None else scale", "1.0")
SAYS = '''"""Kernels of *mine*: a | b.

No scale."""
KNOWN_BREAKS = [{"claim": "attention.formula", "kind": "defect", "reason": "forgets its scale (mine #7)"}]
'''
RAISES = "def rms_norm(x, weight, *, eps=1e-6):\n    raise ValueError('no (norm')\n"
KNOWS = (
    RAISES + "KNOWN_BREAKS = [{'claim': 'norm.formula', 'kind': 'limit', 'reason': 'why :-( so (2, (3))'}]\n"
)


@pytest.fixture
def runs(pytester):
    """runs(**texts) judges each implementation in a run of its own, and gives the paths of their verdicts."""
    toy = Toy(pytester)

    def judged(**texts):
        for name, text in texts.items():
            toy(toy.impl(text, name))
            shutil.move(pytester.path / "out.jsonl", pytester.path / f"{name}.jsonl")
        return [str(pytester.path / f"{name}.jsonl") for name in texts]

    return judged


def test_runs_become_one_page(runs, tmp_path):
    page = tmp_path / "libraries.md"
    paths = runs(right=ATTENTION, wrong=SAYS + NO_SCALE, raises=RAISES)
    assert libraries.main([str(page), *paths]) == 0
    text = page.read_text(encoding="utf-8")
    rows = dict(re.findall(r"^\| `([\w.-]+)` \| (.*) \|$", text, flags=re.MULTILINE))
    assert rows["attention.formula"] == "✓ | D | ·"
    assert rows["generation.cached"] == "○ | ○ | ·"
    assert "Claims that break somewhere: 2\n" in text
    assert "Claims that hold wherever they are offered: 2<" in text
    assert "nobody here offers" not in text
    assert rows["norm.formula"] == "· | · | !"
    assert "bytes.four" not in rows, "it judges no implementation"
    assert "| 2 | `wrong` | Kernels of \\*mine\\*: a \\| b | 2 | 1 | 1 | 0 | 0 | 0 | 0 | 1 |" in text
    assert "**defect**: forgets its scale (mine #7)\n\n- `attention.formula` (cpu float32): output at" in text
    assert "**error**: not explained\n\n- `norm.formula` (cpu float32): rms_norm raised ValueError" in text
    assert len(re.findall(r"^\| 20\d\d-\d\d-\d\d \| cpu \(", text, flags=re.MULTILINE)) == 1, (
        "alike runs, told twice"
    )


def test_claims_that_nobody_offers_are_no_claims_that_hold(runs, tmp_path):
    page = tmp_path / "libraries.md"
    assert libraries.main([str(page), *runs(right=ATTENTION)]) == 0
    holds, unmet = page.read_text(encoding="utf-8").split("<details>")[1:]
    assert "<summary>Claims that hold wherever they are offered: 3<" in holds
    assert "`norm.formula`" not in holds
    assert unmet.startswith("<summary>Claims that nobody here offers: 1<")
    assert re.findall(r"^\| `(.*)` \| · \|$", unmet, flags=re.MULTILINE) == ["norm.formula"]


def test_a_known_break_is_told_with_its_reason_and_what_came_apart(runs, tmp_path):
    page = tmp_path / "libraries.md"
    (path,) = runs(knows=KNOWS)
    assert libraries.main([str(page), path]) == 0
    text = page.read_text(encoding="utf-8")
    assert (
        "**limit**: why :-( so (2, (3))\n\n- `norm.formula` (cpu float32): rms_norm raised ValueError" in text
    )
    (line,) = [x for x in map(json.loads, Path(path).read_text().splitlines()) if x.get("reason")]
    assert line["detail"] == f"limit: {line['reason']} (rms_norm raised ValueError: no (norm)"


@pytest.mark.parametrize(
    "came", ["shape (2, (1, 61))", "raised 'no (norm'", "tokens) (2, 2", "plain", ")", ""]
)
@pytest.mark.parametrize("reason", ["its own (a (b))", "half (open", "closed) (", "plain", "defect: twice"])
def test_no_bracket_inside_a_reason_or_a_figure_parts_them(reason, came):
    line = {"verdict": KNOWN, "detail": f"defect: {reason} ({came})", "reason": reason}
    assert libraries.explained(line) == (reason, came)


@pytest.mark.parametrize("detail", ["defect: reason", "defect: why (what) came", "defect: why (what (came)"])
def test_a_detail_whose_reason_is_not_given_stays_whole(detail):
    whole = ("not told apart", detail.removeprefix("defect: "))
    assert libraries.explained({"verdict": KNOWN, "detail": detail}) == whole


def test_runs_that_do_not_go_together_are_refused(runs, tmp_path, capsys):
    page = tmp_path / "libraries.md"
    (path,) = runs(right=ATTENTION)
    assert libraries.main([str(page), path, path]) == 2
    assert "judges right, as a run before it does" in capsys.readouterr().err
    assert libraries.main([path]) == 2
    assert libraries.main([str(tmp_path / "none" / "libraries.md"), path]) == 2
    assert not page.exists()
