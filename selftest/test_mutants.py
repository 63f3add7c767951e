"""Every mutant is caught by the claims it names, every control breaks nothing, every claim can fail."""

import importlib
import json
import os
import subprocess
import sys
from collections import defaultdict
from itertools import permutations

import pytest

from harness.receipts import Receipt
from selftest.toy import ROOT

MUTANTS = sorted(
    f"mutants.{p.stem}" for p in (ROOT / "mutants").glob("*.py") if p.stem not in ("__init__", "parts")
)
CONTROLS = sorted(
    f"mutants.controls.{p.stem}" for p in (ROOT / "mutants" / "controls").glob("*.py") if p.stem != "__init__"
)


@pytest.fixture(scope="module")
def lines(tmp_path_factory):
    """The verdict lines of all mutants and controls, from one run on each core.

    Workers of pytest-xdist would each collect every case, and send three reports for each.
    """
    folder = tmp_path_factory.mktemp("mutants")
    n = min(cores(), len(MUTANTS + CONTROLS))
    # Whole models take the longest, so each run gets as many of them.
    names = sorted(MUTANTS + CONTROLS, key=lambda name: hasattr(importlib.import_module(name), "Transformer"))
    # One hour for all, in place of the watchdog that costs each case a thread; no capture case by case.
    options = ("-p", "no:cacheprovider", "-p", "no:xdist", "-o", "faulthandler_timeout=0", "-s")
    options += ("-p", "no:logging", "-p", "no:warnings", "--tb=no", "--device=cpu")
    runs, found = {}, []
    try:
        for i in range(n):
            path = folder / f"{i}.jsonl"
            impls = [f"--impl={name}" for name in names[i::n]]
            command = (sys.executable, "-m", "pytest", "spec", *options, f"--verdicts={path}", *impls)
            with path.with_suffix(".txt").open("w") as output:
                runs[path] = subprocess.Popen(command, cwd=ROOT, stdout=output, stderr=output)
        for path, run in runs.items():
            run.wait(timeout=3600)
            part = [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []
            if not part or part[-1]["kind"] != "footer":
                said = path.with_suffix(".txt").read_text()[-2000:]
                pytest.fail(f"the run did not finish: {said}", pytrace=False)
            found += part
    finally:
        for run in runs.values():
            run.kill()
    return found


def cores():
    """How many cores this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


@pytest.fixture(scope="module")
def verdicts(lines):
    """implementation -> claim -> the set of its verdicts over devices and dtypes"""
    found = defaultdict(lambda: defaultdict(set))
    for line in lines:
        if line["kind"] == "verdict" and line["impl"]:
            found[line["impl"]][line["claim"]].add(line["verdict"])
    return found


def broken(claims):
    return sorted(claim for claim, found in claims.items() if found & {"BREAKS", "error"})


@pytest.mark.parametrize("name", MUTANTS)
def test_a_mutant_breaks_the_claims_it_names(verdicts, name):
    named = importlib.import_module(name).MUST_BREAK
    assert named, f"{name} names no claim"
    for claim in named:
        assert claim in verdicts[name], f"{name} names {claim}, which is no claim"
        assert "BREAKS" in verdicts[name][claim], f"{name} leaves {claim} {verdicts[name][claim]}"


@pytest.mark.parametrize("name", MUTANTS)
def test_a_mutant_breaks_by_assertion_and_not_by_a_crash(verdicts, name):
    crashed = [claim for claim, found in verdicts[name].items() if "error" in found]
    assert not crashed


def topics(claims):
    return {claim.partition(".")[0] for claim in claims}


@pytest.mark.parametrize("name", MUTANTS)
def test_a_mutant_breaks_no_unrelated_topic(verdicts, name):
    """Only the topics of the claims it names, and those that it says its defect spreads to."""
    mutant = importlib.import_module(name)
    spreads = topics(broken(verdicts[name])) - topics(mutant.MUST_BREAK)
    assert spreads == set(getattr(mutant, "SPREADS", ()))


@pytest.mark.parametrize("name", CONTROLS)
def test_a_control_breaks_nothing_but_what_it_lists(verdicts, name):
    listed = getattr(importlib.import_module(name), "MAY_BREAK", ())
    assert broken(verdicts[name]) == sorted(listed)


def test_every_claim_that_judges_an_implementation_is_broken_by_a_mutant(lines, verdicts):
    judging = {line["id"] for line in lines if line["kind"] == "claim" and line["needs"]}
    caught = {claim for name in MUTANTS for claim in broken(verdicts[name])}
    assert sorted(judging - caught) == []


def test_topics_are_told_apart(verdicts):
    """For any two topics some mutant breaks claims of the one and none of the other: no catch-all decides."""
    reached = [topics(broken(verdicts[name])) for name in MUTANTS]
    for one, other in permutations(set.union(*reached), 2):
        assert any(one in found and other not in found for found in reached), f"{one} never without {other}"


def test_the_matrix_is_locked(verdicts, snapshot):
    """What each mutant breaks, so that a change in it is seen and explained."""
    text = ""
    for name in MUTANTS + CONTROLS:
        text += f"{name}\n" + "".join(f"    {claim}\n" for claim in broken(verdicts[name]))
    assert text == snapshot.use_extension(Receipt)
