"""python benchmarks/cost_of_asking.py [--rounds=N] [--mutants]: what the specification itself costs.

Every run is a process of its own, with warm bytecode, and stands beside the floor of importing torch. The
runs take turns, N times over (3) after one round that is thrown away; figures against a bound are of the
fastest ones, which the machine's other work disturbed least. Seconds are of the CPU (user and system, workers
included) unless they say wall. Exit status 1 where a bound is missed. --mutants adds the run of every mutant,
which takes minutes.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from statistics import median

from harness.claims import NAMES, TOPICS
from harness.receipts import Table

ROOT = Path(__file__).parent.parent
PYTEST = (sys.executable, "-m", "pytest", "-p", "no:cacheprovider")
NOTHING = " and ".join(f"not {topic}" for topic in TOPICS)
MANY = (8, 16, 32, 64)


@dataclass
class Run:
    """What one process took: seconds by the wall and of the CPU, and its largest size in bytes."""

    wall: float
    cpu: float
    peak: int


def run(command: tuple[str, ...]) -> Run:
    """Raises RuntimeError with the end of its output where pytest could not be used."""
    env = {k: v for k, v in os.environ.items() if k != "PYTHONDONTWRITEBYTECODE"}
    with tempfile.TemporaryFile() as output:
        start = time.perf_counter()
        child = subprocess.Popen(command, cwd=ROOT, env=env, stdout=output, stderr=output)
        _, status, used = os.wait4(child.pid, 0)
        wall = time.perf_counter() - start
        child.returncode = os.waitstatus_to_exitcode(status)
        if child.returncode not in (0, 1, 5):  # 1: something breaks, as in mutants; 5: an empty selection
            output.seek(0)
            raise RuntimeError(f"{' '.join(command)}\n{output.read().decode()[-2000:]}")
    unit = 1 if sys.platform == "darwin" else 1024
    return Run(wall, used.ru_utime + used.ru_stime, used.ru_maxrss * unit)


def in_turn(commands: dict[str, tuple[str, ...]], rounds: int) -> dict[str, list[Run]]:
    """name -> its runs, after one that only warms up bytecode and the page cache."""
    found: dict[str, list[Run]] = {name: [] for name in commands}
    for turn in range(rounds + 1):
        for name, command in commands.items():
            print(f"\rround {turn} of {rounds}: {name:60}", end="", file=sys.stderr, flush=True)
            made = run(command)
            if turn:
                found[name].append(made)
    print(f"\r{'':90}\r", end="", file=sys.stderr)
    return found


def cases(path: Path, label: str) -> int:
    """How many cases a run gave to an implementation."""
    lines = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    return sum(line["cases"]["run"] for line in lines if line["kind"] == "verdict" and line["impl"] == label)


def offering(folder: Path, name: str, *names: str) -> str:
    """An implementation of its own that imports nothing that is not there already."""
    (folder / f"{name}.py").write_text(f"from refimpl import {', '.join(names)}  # noqa: F401\n")
    return f"--impl={folder / name}.py"


def least(runs: list[Run], what: str = "cpu") -> float:
    return min(getattr(one, what) for one in runs)


def middle(runs: list[Run], what: str = "cpu") -> float:
    return median(getattr(one, what) for one in runs)


# --- one implementation -------------------------------------------------------------------------------------


def single(folder: Path, rounds: int) -> tuple[list[Table], bool]:
    """The floors, a start, collection, the suite, one topic, and one more implementation."""
    functions = ("attention", "rms_norm")  # the one with the most claims, and the one with the fewest
    verdicts = folder / "verdicts.jsonl"
    commands = {
        "import torch": (sys.executable, "-c", "import torch"),
        "import torch, pytest": (sys.executable, "-c", "import torch, pytest"),
        "start-up: an empty selection": (*PYTEST, "-k", NOTHING),
        "collection of everything": (*PYTEST, "--collect-only"),
        "-k rope": (*PYTEST, "-k", "rope"),
        "-k 'rope or norm or ffn or causal'": (*PYTEST, "-k", "rope or norm or ffn or causal"),
        "the default suite": (*PYTEST, f"--verdicts={verdicts}"),
        "the default suite, -n 2": (*PYTEST, "-n2"),
    }
    for name in functions:
        mine = offering(folder, f"mine_{name}", name)
        commands[f"and one more that offers {name}"] = (*PYTEST, "--impl=refimpl", mine)
    every = offering(folder, "mine_all", *NAMES)
    both = folder / "both.jsonl"
    commands["and one more that offers all"] = (*PYTEST, "--impl=refimpl", every, f"--verdicts={both}")
    found = in_turn(commands, rounds)
    rows = [
        (name, middle(runs), least(runs), middle(runs, "wall"), least(runs, "wall"),
         least(runs) / least(found["import torch"]), round(least(runs, "peak") / 1e6))
        for name, runs in found.items()
    ]  # fmt: skip
    columns = ("run", "CPU s, median", "min", "wall s, median", "min", "CPU / import torch", "peak MB")
    suite, torch_alone = least(found["the default suite"]), least(found["import torch"])
    rope = least(found["-k rope"], "wall") / least(found["import torch, pytest"], "wall")
    added = max(least(found[f"and one more that offers {name}"]) - suite for name in functions)
    n_cases = cases(both, "mine_all")
    a_case = 1e3 * (least(found["and one more that offers all"]) - suite) / n_cases
    gathering = least(found["collection of everything"]) - least(found["start-up: an empty selection"])
    a_hundred = 100 * gathering / (cases(verdicts, "refimpl") + cases(verdicts, ""))
    bounds = (
        ("the default suite / import torch, CPU", suite / torch_alone, 5.0),
        ("-k rope / import torch, pytest, wall", rope, 1.5),
        ("one more that offers one function, CPU s (the most)", added, 1.5),
        (f"one more that offers all, CPU ms a case ({n_cases} cases)", a_case, 5.0),
        ("collection of a hundred cases, CPU s", a_hundred, None),
    )
    judged, kept = judge("Bounds", bounds)
    return [Table("What a run costs", columns, tuple(rows)), judged], kept


def judge(title: str, bounds: tuple[tuple[str, float, float | None], ...]) -> tuple[Table, bool]:
    rows = [
        (what, value, "-" if bound is None else f"{bound:g}",
         "" if bound is None else "kept" if value <= bound else "MISSED")
        for what, value, bound in bounds
    ]  # fmt: skip
    kept = all(bound is None or value <= bound for _, value, bound in bounds)
    return Table(title, ("what", "measured", "at most", ""), tuple(rows)), kept


# --- many implementations ---------------------------------------------------------------------------------


def many(folder: Path) -> tuple[list[Table], bool]:
    """8, 16, 32 and 64 implementations of one function in one run: memory stays, and time grows by the same
    amount for each."""
    impls = [offering(folder, f"copy_{i}", "rms_norm") for i in range(max(MANY))]
    turns = [{n: run((*PYTEST, *impls[:n])) for n in MANY} for _ in range(3)]
    found = {n: min((turn[n] for turn in turns), key=lambda one: one.cpu) for n in MANY}
    two = {n: run((*PYTEST, "-n2", *impls[:n])) for n in MANY[::3]}
    rows = [(n, one.cpu, one.wall, two[n].wall if n in two else "-", round(one.peak / 1e6))
            for n, one in found.items()]  # fmt: skip
    early = (found[32].cpu - found[8].cpu) / 24
    late = (found[64].cpu - found[32].cpu) / 32
    bounds = (
        # 1 if linear, 2.4 if quadratic; one run strays by a second or two, which moves this by a third.
        ("each after the 32nd / each before, CPU", late / early, 1.6),
        ("peak memory, 64 / 8", found[64].peak / found[8].peak, 1.15),
        ("each after the 32nd, CPU s", late, 1.5),
    )
    judged, kept = judge("Growth with implementations", bounds)
    columns = ("implementations of rms_norm", "CPU s", "wall s", "wall s, -n 2", "peak MB")
    return [Table("Many implementations in one run", columns, tuple(rows)), judged], kept


def mutants() -> Table:
    """Every mutant and control, by the selftest, which runs one process on each core."""
    one = run((*PYTEST, "selftest/test_mutants.py"))
    row = (
        f"every mutant and control, on {os.cpu_count() or 1} cores",
        one.cpu,
        one.wall,
        round(one.peak / 1e6),
    )
    return Table("The mutants", ("run", "CPU s", "wall s", "peak MB"), (row,))


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--rounds", type=int, default=3, help="timed runs of each kind (default: 3)")
    parser.add_argument("--mutants", action="store_true", help="time the run of every mutant, too")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        alone, kept = single(Path(name), options.rounds)
        print(*alone, sep="\n\n", end="\n\n", flush=True)
        crowd, grew = many(Path(name))
        print(*crowd, sep="\n\n", end="\n\n", flush=True)
    if options.mutants:
        print(mutants())
    return int(not (kept and grew))


if __name__ == "__main__":
    sys.exit(main())
