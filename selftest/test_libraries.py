"""The page of libraries: made from the runs of several environments, one table of all of them."""

import re
import shutil

import pytest

from harness import libraries
from selftest.toy import ATTENTION, Toy

pytest_plugins = "pytester"
NO_SCALE = ATTENTION.replace("q.shape[-1] ** -0.5 if scale is None else scale", "1.0")
SAYS = '''"""Kernels of *mine*: a | b.

No scale."""
KNOWN_BREAKS = [{"claim": "attention.formula", "kind": "defect", "reason": "forgets its scale (mine #7)"}]
'''
RAISES = "def rms_norm(x, weight, *, eps=1e-6):\n    raise ValueError('no (norm')\n"


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
    assert rows["norm.formula"] == "· | · | !"
    assert "bytes.four" not in rows, "it judges no implementation"
    assert "| 2 | `wrong` | Kernels of \\*mine\\*: a \\| b | 2 | 1 | 1 | 0 | 0 | 0 | 0 | 1 |" in text
    assert "**defect**: forgets its scale (mine #7)\n\n- `attention.formula` (cpu float32): output at" in text
    assert "**error**: not explained\n\n- `norm.formula` (cpu float32): rms_norm raised ValueError" in text
    assert len(re.findall(r"^\| 20\d\d-\d\d-\d\d \| cpu \(", text, flags=re.MULTILINE)) == 1, (
        "alike runs, told twice"
    )


def test_runs_that_do_not_go_together_are_refused(runs, tmp_path, capsys):
    page = tmp_path / "libraries.md"
    (path,) = runs(right=ATTENTION)
    assert libraries.main([str(page), path, path]) == 2
    assert "judges right, as a run before it does" in capsys.readouterr().err
    assert libraries.main([path]) == 2
    assert libraries.main([str(tmp_path / "none" / "libraries.md"), path]) == 2
    assert not page.exists()
