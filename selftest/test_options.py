"""Bad input: one line that says what was wrong, what was expected and what to do; exit status 4."""

import pytest
import torch

from selftest.toy import ATTENTION, SPEC, Toy

SECOND = '@claim("bytes.two", needs=None, source="toy")\n'

pytest_plugins = "pytester"


@pytest.fixture
def toy(pytester):
    return Toy(pytester)


def refused(result, *says):
    """The run ended as unusable, with one line that says all of this."""
    assert result.ret == 4
    errors = [line for line in result.stderr.lines if line.startswith("ERROR:")]
    assert len(errors) == 1
    for text in says:
        assert text in errors[0]
    assert "Traceback" not in result.stderr.str() + result.stdout.str()


@pytest.mark.parametrize(
    "option, says",
    [
        ("--dtype=float8", ("float8", "float32, float64, bfloat16, float16")),
        ("--device=tpu", ("tpu", "cpu, cuda, mps")),
        ("--impl=no_such_module", ("no module 'no_such_module'", "PATH.py")),
        ("--impl=no_such_file.py", ("no such file", "PATH.py")),
        ("--impl=", ("names nothing", "PATH.py")),
        ("--impl=refimpl:nothing", ("nothing",)),
        ("--impl=refimpl.config", ("offers none of attention, rope",)),
        ("--seeds=0", ("at least 1",)),
        ("--verdicts=no/such/folder.jsonl", ("no such folder",)),
        ("-krope and", ("no keyword expression",)),
    ],
)
def test_an_unusable_option_is_refused_in_one_line(toy, option, says):
    refused(toy(option), *says)


@pytest.mark.parametrize("name", ["cuda", "mps"])
def test_an_absent_device_is_refused_and_never_skipped(toy, name, monkeypatch):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    monkeypatch.setattr(torch.backends.mps, "is_available", lambda: False)
    refused(toy(f"--device={name}"), name, "no such device here", "cpu")


def test_the_fallback_that_would_label_cpu_results_as_mps_is_refused(toy, monkeypatch):
    monkeypatch.setattr(torch.backends.mps, "is_available", lambda: True)
    monkeypatch.setenv("PYTORCH_ENABLE_MPS_FALLBACK", "1")
    refused(toy("--device=mps"), "unset PYTORCH_ENABLE_MPS_FALLBACK")


@pytest.mark.parametrize(
    "text, says",
    [
        ("1 / 0", ("ZeroDivisionError", "mine.py:1")),
        ("def attention(q, k, v:\n    pass", ("SyntaxError",)),
        ("import sys; sys.exit(3)", ("SystemExit",)),
        ("import no_such_library", ("needs 'no_such_library', which is not installed",)),
        ("attention = 3", ("attention is a int, not callable",)),
        ("x = 1", ("offers none of",)),
        (ATTENTION + "DTYPES = ['int8']", ("DTYPES", "float32")),
        (ATTENTION + "DEVICES = ['tpu']", ("DEVICES", "cpu")),
        (ATTENTION + "DIFFERS = {'colour': 'blue'}", ("DIFFERS", "topics")),
        (ATTENTION + "KNOWN_BREAKS = [{'claim': 'a.b'}]", ("KNOWN_BREAKS", "reason")),
        (ATTENTION + "KNOWN_BREAKS = [{'claim': 'a.b', 'kind': 'bug', 'reason': 'x'}]", ("defect",)),
        (
            ATTENTION + "KNOWN_BREAKS = [{'claim': 'norm.formla', 'kind': 'defect', 'reason': 'x'}]",
            ("'norm.formla', which is no claim", "norm.formula"),
        ),
    ],
)
def test_a_file_that_cannot_be_used_is_refused_in_one_line(toy, text, says):
    refused(toy(toy.impl(text)), *says)


@pytest.mark.parametrize(
    "change, says",
    [
        (lambda text: text.replace('"""A float32 has four bytes."""', "pass"), "no docstring"),
        (lambda text: text.replace("A float32 has four bytes", "Attention is its formula"), "two tests"),
        (lambda text: text.replace("bytes.four", "attention.formula"), "two tests claim 'attention.formula'"),
        (lambda text: text.replace('needs="rms_norm"', 'needs="layer_norm"'), "layer_norm"),
        (lambda text: text.replace("bytes.four", "colour.blue"), "topic.what-it-says"),
        (lambda text: text.replace("source=", "sauce="), "sauce"),
        (lambda text: text + "\ndef test_more(): pass\n", "carries no claim"),
        (lambda text: text.replace('@claim("bytes.four"', SECOND + '@claim("bytes.four"'), "2 claims"),
    ],
)  # fmt: skip
def test_a_malformed_spec_stops_the_collection(toy, change, says):
    toy.spec(change(SPEC))
    result = toy()
    said = result.stderr.str() + result.stdout.str()
    assert result.ret in (pytest.ExitCode.USAGE_ERROR, pytest.ExitCode.INTERRUPTED)
    assert says in said
    assert "harness/" not in said


def test_a_selection_of_nothing_says_what_can_be_selected(toy):
    result = toy("-k", "colour")
    assert result.ret == pytest.ExitCode.NO_TESTS_COLLECTED
    result.stdout.fnmatch_lines(["no claim was selected: -k takes topics*--claims*"])


def test_two_files_with_one_name_stay_apart(toy):
    (toy.pytester.path / "other").mkdir()
    (toy.pytester.path / "other" / "mine.py").write_text(ATTENTION.replace("0.5", "0.4"))
    result = toy(toy.impl(ATTENTION), f"--impl={toy.pytester.path}/other/mine.py", "-k", "attention.gradient")
    assert result.ret == 0
    impls = [line["impl"] for line in toy.lines() if line["kind"] == "verdict"]
    assert len(set(impls)) == 2
    assert all(path.endswith("mine.py") for path in impls)


def test_a_users_json_module_does_not_replace_the_standard_one(toy):
    result = toy(toy.impl(ATTENTION, "json"))
    assert result.ret == 0


def test_an_object_inside_a_module_can_be_judged(toy):
    toy.impl(
        "class Kernel:\n    attention = staticmethod(lambda q, k, v, **o: v)\nmade = Kernel()", "kernels"
    )
    toy("--impl=kernels:made", "-k", "attention.formula")
    assert toy.verdicts() == {"attention.formula": "BREAKS"}


def test_claims_are_listed_without_running(toy):
    result = toy("--claims", "-k", "norm")
    assert result.ret == 0
    result.stdout.fnmatch_lines(
        ["## norm", "- `norm.formula`: RMSNorm is its formula.", "  Needs rms_norm. Source: toy."]
    )
    assert "attention.formula" not in result.stdout.str()
