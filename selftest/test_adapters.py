"""The adapters as texts: short, documented, and with known breaks that name real claims."""

import ast
import re

import pytest

from selftest.toy import ROOT

ADAPTERS = sorted(p for p in (ROOT / "adapters").glob("*.py") if p.stem not in ("__init__", "known"))


@pytest.fixture(scope="module")
def claims():
    page = (ROOT / "docs" / "claims.md").read_text(encoding="utf-8")
    return set(re.findall(r"^- `([^`]+)`: .*\n  Needs", page, flags=re.MULTILINE))


@pytest.mark.parametrize("path", ADAPTERS, ids=lambda p: p.stem)
def test_an_adapter_says_what_its_verdicts_rest_on(path):
    text = path.read_text(encoding="utf-8")
    assert ast.get_docstring(ast.parse(text)), "no docstring"
    code = [line for line in text.splitlines() if line.strip() and not line.lstrip().startswith("#")]
    assert len(code) <= 110, f"{len(code)} lines: an adapter is a thin translation"


@pytest.mark.parametrize("path", ADAPTERS, ids=lambda p: p.stem)
def test_known_breaks_name_real_claims(path, claims):
    named = re.findall(r'"claim": "([^"]+)"', path.read_text(encoding="utf-8"))
    assert set(named) <= claims
