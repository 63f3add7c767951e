"""The adapters as texts: short, documented, with known breaks that name real claims, and a place in a run."""

import ast
import re

import pytest

from harness.claims import TOPICS
from selftest.toy import ROOT

ADAPTERS = sorted(p for p in (ROOT / "adapters").glob("*.py") if p.stem not in ("__init__", "known"))
ID = rf"(?:{'|'.join(TOPICS)})\.[a-z0-9-]+"

REMAKE = (
    "docs/libraries.md is stale: run tox -e adapters, flex, jax, keras and litgpt, each with "
    "-- --verdicts=X.jsonl, then python -m harness.libraries docs/libraries.md and their five files"
)


@pytest.fixture(scope="module")
def claims():
    """The claims that judge an implementation, as the default run has them."""
    return judging(0)


@pytest.fixture(scope="module")
def timed():
    """Those about time: an adapter may be known to break one (tox -e bench judges it); no page has them."""
    return judging(1)


def judging(part):
    page = (ROOT / "docs" / "claims.md").read_text(encoding="utf-8").split("\n# Claims about time\n")[part]
    return set(re.findall(r"^- `([^`]+)`: .*\n  Needs (?!no implementation)", page, flags=re.MULTILINE))


@pytest.fixture(scope="module")
def libraries():
    """The page that harness.libraries makes of a run of each adapter."""
    return (ROOT / "docs" / "libraries.md").read_text(encoding="utf-8")


@pytest.mark.parametrize("path", ADAPTERS, ids=lambda p: p.stem)
def test_an_adapter_says_what_its_verdicts_rest_on(path):
    text = path.read_text(encoding="utf-8")
    assert ast.get_docstring(ast.parse(text)), "no docstring"
    code = [line for line in text.splitlines() if line.strip() and not line.lstrip().startswith("#")]
    assert len(code) <= 110, f"{len(code)} lines: an adapter is a thin translation"


@pytest.mark.parametrize("path", [*ADAPTERS, ROOT / "adapters" / "known.py"], ids=lambda p: p.stem)
def test_known_breaks_name_claims_that_judge(path, claims, timed):
    named = set(re.findall(rf'"({ID})"', path.read_text(encoding="utf-8")))
    unknown = sorted(named - {"norm.weight"} - claims - timed)
    assert not unknown, f"no claims about implementations: {unknown}"


@pytest.mark.parametrize("path", ADAPTERS, ids=lambda p: p.stem)
def test_an_adapter_is_run_and_its_verdicts_are_told(path, libraries):
    ran = re.findall(r"--impl=adapters\.(\w+)", (ROOT / "tox.ini").read_text(encoding="utf-8"))
    assert path.stem in ran, "no environment of tox.ini runs it"
    told = re.findall(r"^### adapters\.(\w+)", libraries, flags=re.MULTILINE)
    assert path.stem in told, REMAKE


def test_the_page_of_libraries_tells_of_adapters_that_exist(libraries):
    told = set(re.findall(r"^### adapters\.(\w+)", libraries, flags=re.MULTILINE))
    assert told <= {path.stem for path in ADAPTERS}, REMAKE


def test_the_page_of_libraries_has_the_claims_of_today(libraries, claims):
    rows = set(re.findall(rf"^\| `({ID})` \|", libraries, flags=re.MULTILINE))
    assert not claims ^ rows, f"{REMAKE}; it lacks {sorted(claims - rows)}, and has {sorted(rows - claims)}"
    broken = set(re.findall(rf"^- `({ID})`", libraries, flags=re.MULTILINE))
    assert broken <= rows


def test_the_page_of_libraries_explains_every_break(libraries):
    assert "**BREAKS**" not in libraries
    assert "**error**" not in libraries
