"""Runs: selection, workers, interruption, crashes, and the file of verdicts."""

import json
import subprocess
import sys
from pathlib import Path

import jsonschema
import pytest

from harness.claims import TOPICS
from harness.select import leaves_out
from selftest.toy import ATTENTION, ROOT, SPEC, Toy

pytest_plugins = "pytester"
PYTEST = (sys.executable, "-m", "pytest")


@pytest.fixture
def toy(pytester):
    return Toy(pytester)


def untimed(lines):
    return [{k: v for k, v in line.items() if k not in ("seconds", "started")} for line in lines]


@pytest.mark.parametrize(
    "word, claims",
    [
        ("attention", {"attention.formula", "attention.gradient"}),
        ("attention.formula", {"attention.formula"}),
        ("norm or bytes", {"norm.formula", "bytes.four"}),
        ("not attention", {"norm.formula", "generation.cached", "bytes.four"}),
        ("formula", {"attention.formula", "norm.formula"}),
    ],
)
def test_a_topic_or_an_id_selects_exactly_its_claims(toy, word, claims):
    """Even for an implementation whose own name contains the word."""
    toy(toy.impl(ATTENTION, "attention_norm_bytes"), "-k", word)
    assert set(toy.verdicts()) == claims


@pytest.mark.parametrize(
    "expression, read",
    [
        ("rope", {"rope"}),
        ("rope.relative-offset", {"rope"}),
        ("rope or lm-head", {"rope", "lm-head"}),
        ("not rope", set(TOPICS) - {"rope"}),
        ("rope and not rope.rates", {"rope"}),
        ("relative", set(TOPICS)),
        ("rope and my_kernel", {"rope"}),
        ("(norm or ffn) and cpu", {"norm", "ffn"}),
        ("a or b or c or d or e or rope", set(TOPICS)),
    ],
)
def test_only_files_that_can_hold_a_selected_claim_are_read(expression, read):
    files = {topic: Path(f"spec/test_{topic.replace('-', '_')}.py") for topic in TOPICS}
    assert {topic for topic, path in files.items() if not leaves_out(path, expression)} == read
    assert not leaves_out(Path("selftest/test_rope.py"), "norm")


def test_verdict_lines_of_two_workers_equal_those_of_one_process(toy):
    mine = toy.impl(ATTENTION.replace("** -0.5", "** -0.6"))
    toy(mine, "--impl=refimpl", alone=True)
    serial = toy.lines()
    result = toy(mine, "--impl=refimpl", "-n2", alone=True)
    assert untimed(toy.lines())[1:] == untimed(serial)[1:]
    assert result.ret == int(serial[-1]["exit_status"])


def test_nothing_offered_exits_with_1_under_workers_too(toy):
    result = toy(toy.impl("def rope(x, positions, *, base=1e4): return x"), "-k", "norm", "-n2", alone=True)
    assert result.ret == 1
    assert toy.verdicts() == {"norm.formula": "not offered"}


def test_every_line_of_a_verdict_file_follows_the_schema(toy):
    toy(toy.impl(ATTENTION.replace("** -0.5", "** -0.6")), "--impl=refimpl")
    schema = json.loads((ROOT / "harness" / "verdicts.schema.json").read_text())
    check = jsonschema.Draft202012Validator(schema)
    lines = toy.lines()
    for line in lines:
        check.validate(line)
    assert [lines[0]["kind"], lines[-1]["kind"]] == ["header", "footer"]
    assert {line["kind"] for line in lines} == {"header", "claim", "verdict", "footer"}


def test_an_interrupted_run_leaves_no_footer(toy):
    mine = toy.impl(ATTENTION.replace("    g =", "    raise KeyboardInterrupt\n    g ="))
    result = toy(mine, alone=True)
    assert result.ret == 2
    assert toy.lines()[-1]["kind"] != "footer"


@pytest.mark.parametrize(
    "deed", ["import os; os._exit(7)", "import time; time.sleep(60)"], ids=["dies", "hangs"]
)
def test_a_lost_process_is_an_error_and_the_rest_get_verdicts(toy, deed):
    mine = toy.impl(ATTENTION.replace("    g =", f"    if q.shape[2] == 1: {deed}\n    g ="))
    options = ("-n1", "-o", "faulthandler_timeout=3", "-o", "faulthandler_exit_on_timeout=true")
    result = toy(mine, *options, alone=True)
    assert result.ret == 1
    assert toy.verdicts() == {
        "attention.formula": "error",
        "attention.gradient": "holds",
        "norm.formula": "not offered",
        "generation.cached": "holds",
        "bytes.four": "holds",
    }
    assert "lost" in toy.detail("attention.formula")


def test_a_process_lost_on_its_last_case_still_leaves_every_verdict(toy):
    toy.spec(
        SPEC.replace("same(torch.float32.itemsize", "import os; os._exit(7); same(torch.float32.itemsize")
    )
    toy(toy.impl(ATTENTION), "-n1", alone=True)
    assert toy.verdicts()["bytes.four"] == "error"
    assert toy.verdicts()["norm.formula"] == "not offered"


def test_a_run_of_last_failures_judges_only_those(toy):
    mine = toy.impl(ATTENTION.replace("** -0.5", "** -0.6").replace("out", "out"))
    toy.spec(SPEC.replace("scale=0.4, what", "what"))
    plugins = ("-p", "no:syrupy", "-p", "no:benchmark", "--verdicts=out.jsonl")
    toy.pytester.runpytest_inprocess(*plugins, mine)
    toy.pytester.runpytest_inprocess(*plugins, mine, "--lf")
    assert toy.verdicts()["attention.formula"] == "BREAKS"
    assert "bytes.four" not in toy.verdicts()


def run_from(folder, *options):
    command = (*PYTEST, "-p", "no:cacheprovider", *options)
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)


def test_a_file_outside_the_checkout_is_judged_from_either_place(tmp_path):
    """With the = form: before conftest.py is read, pytest takes a bare path for a test's."""
    (tmp_path / "kernel.py").write_text(ATTENTION)
    inside = run_from(ROOT, f"--impl={tmp_path / 'kernel.py'}", "-k", "attention.formula")
    assert inside.returncode == 0, inside.stdout + inside.stderr
    outside = run_from(tmp_path, str(ROOT), "--impl=kernel.py", "-k", "attention.formula")
    assert outside.returncode == 0, outside.stdout + outside.stderr
    assert "attention.formula  cpu float32  holds" in " ".join(outside.stdout.splitlines())
