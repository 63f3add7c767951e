"""What a run imports: nothing heavier than it has to."""

import subprocess
import sys

import pytest

from selftest.toy import ROOT

HEAVY = ("torch._dynamo", "sympy", "transformers", "matplotlib", "jax", "mlx")
REPORT = f"""
import sys, pytest
code = pytest.main(sys.argv[1:])
print("loaded:", *[name for name in {HEAVY} if name in sys.modules])
sys.exit(code)
"""


def loaded(*options):
    command = (sys.executable, "-c", REPORT, "-p", "no:cacheprovider", *options)
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout.splitlines()[-1].removeprefix("loaded:").split()


def test_collection_imports_nothing_heavier_than_torch():
    assert loaded("--collect-only", "-q") == []


@pytest.mark.parametrize("topic", ["rope", "rope.relative-offset"])
def test_rope_is_judged_without_dynamo_or_sympy(topic):
    assert loaded("-k", topic) == []
