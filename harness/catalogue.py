"""python -m harness.catalogue: write docs/claims.md, the list of all claims."""

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parent.parent
PAGE = ROOT / "docs" / "claims.md"
HEADING = """# The claims

Every claim of the specification, by topic, as `pytest --claims` prints them. Written by
`python -m harness.catalogue`; where each statement of the documents went is in `spec/traceability.csv`.

"""
TIMES = """
# Claims about time

Timed as ratios and growth within one run by `tox -e bench`, and no part of the default run.

"""


def page() -> str:
    """The list, from the collected tests. Raises RuntimeError with pytest's words when collection fails."""
    times = listed("benchmarks").partition("\n## cited")[0]
    return HEADING + listed("spec") + TIMES + times


def listed(folder: str) -> str:
    """What `pytest --claims` prints of a folder."""
    options = ("--claims", "-q", "-m", "slow or not slow", "-p", "no:cacheprovider")
    command = (sys.executable, "-m", "pytest", str(ROOT / folder), *options)
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError((done.stdout + done.stderr)[-2000:])
    return done.stdout


if __name__ == "__main__":
    PAGE.parent.mkdir(exist_ok=True)
    PAGE.write_text(page(), encoding="utf-8")
