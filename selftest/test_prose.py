"""The specification's own text: its sentences, its ids, and its table from statement to claim."""

import csv
import re

import pytest

from harness import catalogue
from selftest.toy import ROOT

DISCOURAGED = r"\b(should|must|test that|tests that|checks? that|verif(y|ies)|ensures?)\b"


@pytest.fixture(scope="module")
def page():
    """The list of claims, as docs/claims.md is to have it."""
    return catalogue.page()


@pytest.fixture(scope="module")
def statements(page):
    """claim id -> its sentence"""
    return dict(re.findall(r"^- `([^`]+)`: (.*)\n  Needs", page, flags=re.MULTILINE))


@pytest.fixture(scope="module")
def rows():
    with (ROOT / "spec" / "traceability.csv").open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def test_every_statement_is_one_short_sentence_in_the_present(statements):
    for id, sentence in statements.items():
        assert len(sentence) <= 110, f"{id} says it in {len(sentence)} characters"
        assert sentence[0].isupper() or not sentence[0].isalpha(), f"{id} starts in lower case"
        assert sentence.endswith("."), f"{id} has no full stop"
        assert not re.search(DISCOURAGED, sentence, re.IGNORECASE), f"{id} speaks of tests: {sentence}"
        assert len(re.findall(r"[.!?] [A-Z]", sentence)) == 0, f"{id} is more than one sentence"


def test_the_list_of_claims_is_locked(page):
    """Additions, renames and removals show in docs/claims.md, which `tox -e receipts` rewrites."""
    assert (ROOT / "docs" / "claims.md").read_text(encoding="utf-8") == page


def test_every_row_of_the_traceability_table_leads_somewhere(rows, statements):
    for row in rows:
        for claim in row["claim"].split("; "):
            found = claim in statements or claim in ("cited", "figure")
            assert found, f"{row['statement']} leads to {claim!r}, which is no claim"
        assert row["document"] in ("refresher", "whiteboard"), row
        assert row["section"], row
        if row["claim"] in ("cited", "figure"):
            assert row["note"], f"{row['statement']} is {row['claim']} without a note"


def test_every_claim_about_a_document_has_a_row(rows, page, statements):
    traced = {claim for row in rows for claim in row["claim"].split("; ")}
    sources = dict(re.findall(r"^- `([^`]+)`: .*\n  Needs .* Source: (.*)\.$", page, flags=re.MULTILINE))
    for id in statements:
        if "refresher" in sources[id] or "whiteboard" in sources[id]:
            assert id in traced, f"{id} has no row in spec/traceability.csv"


def test_no_statement_is_traced_twice(rows):
    seen = [(row["document"], row["statement"]) for row in rows]
    assert len(seen) == len(set(seen))


def test_no_bare_tolerance_stands_in_the_spec():
    for path in (ROOT / "spec").glob("test_*.py"):
        for number, line in enumerate(path.read_text().splitlines(), 1):
            bare = re.search(r"(atol|rtol|rel|abs|tol)[a-z_]*=[0-9.]+e-[0-9]+", line)
            assert not bare, f"{path.name}:{number} has a tolerance of its own: {line.strip()}"


def test_no_claim_is_skipped_or_expected_to_fail():
    for path in (ROOT / "spec").glob("test_*.py"):
        assert not re.search(r"pytest\.skip|mark\.skip|xfail", path.read_text()), path.name


def test_the_reference_stays_readable_in_one_sitting():
    lines = sum(len(path.read_text().splitlines()) for path in (ROOT / "refimpl").glob("*.py"))
    assert lines < 600
