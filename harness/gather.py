"""The controlling process: every case, from one process or from workers, and what they come to."""

import csv
import json
from pathlib import Path
from typing import Any

import pytest

from harness import report
from harness.claims import Claim
from harness.options import Setup, device_name, strict
from harness.verdicts import ERROR, Case, Key, collect, counts

ROOT = Path(__file__).parent.parent
SETUP = pytest.StashKey[Setup]()
SUMMARY = pytest.StashKey[dict[str, Any]]()


def cited() -> list[dict[str, str]]:
    """The statements that rest on literature."""
    path = ROOT / "spec" / "traceability.csv"
    if not path.exists():
        return []
    with path.open(encoding="utf-8", newline="") as file:
        return [row for row in csv.DictReader(file) if row["claim"] == "cited"]


def restored(fields: dict[str, Any]) -> dict[str, Any]:
    """A claim's fields after a trip through JSON."""
    return {key: tuple(value) if isinstance(value, list) else value for key, value in fields.items()}


class Verdicts:
    """Gathers every case, in one process or from workers, and says what they come to."""

    def __init__(self, config: pytest.Config) -> None:
        self.config = config
        self.cases: list[tuple[Key, Case]] = []
        self.started: dict[str, Key] = {}
        self.claims: dict[str, Claim] = {}
        self.not_offered: dict[Key, str] = {}
        self.tables: dict[tuple[Key, str], tuple[str, str]] = {}  # by title: the case's node and the table
        self.other_failures = 0
        self.lines: report.Lines | None = None
        self.reports: list[str] = []  # what became of each --report, in a line

    def pytest_sessionstart(self) -> None:
        option, run = self.config.option, self.config.stash[SETUP]
        options = {
            "impl": [impl.spec for impl in run.impls],
            "device": run.devices,
            "dtype": run.dtypes,
            "seed": option.seed,
            "seeds": option.seeds,
            "keyword": option.keyword,
            "config": option.config or [],
            "card": option.card,
        }
        devices = {name: device_name(name) for name in run.devices}
        rests_on = {impl.label: impl.docstring for impl in run.impls}
        self.header = report.header_line(options, devices, rests_on)
        if option.verdicts:
            self.lines = report.Lines(option.verdicts, self.header)

    def learn(self, summary: dict[str, Any]) -> None:
        self.claims |= {id: Claim(**restored(c)) for id, c in summary["claims"].items()}
        self.not_offered |= {tuple(key): reason for key, reason in summary["not_offered"]}

    @pytest.hookimpl(optionalhook=True)
    def pytest_testnodedown(self, node: Any) -> None:
        self.learn(getattr(node, "workeroutput", {}).get("summary", {"claims": {}, "not_offered": []}))

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        said: dict[str, Any] = dict(report.user_properties)
        if "summary" in said:
            self.learn(json.loads(said["summary"]))
        key = (said["claim"], said["impl"], said["device"], said["dtype"]) if "claim" in said else None
        if key and report.when == "setup":
            self.started[report.nodeid] = key
        if "case" in said and key:
            self.cases.append((key, Case(**json.loads(said["case"]))))
        elif str(report.when) == "???" and report.nodeid in self.started:
            lost = "the process was lost: the implementation hung, or killed it"
            self.cases.append((self.started[report.nodeid], Case(ERROR, report.nodeid, lost)))
        elif report.failed:
            self.other_failures += 1
        if key and report.when == "call":
            for text in [str(value) for name, value in report.user_properties if name == "receipt"]:
                at, found = (key, json.loads(text)["title"]), (report.nodeid, text)
                self.tables[at] = max(self.tables.get(at, found), found)  # in whatever order workers report
        internal = ("summary", "case", "receipt")  # not for JUnit files
        report.user_properties = [(n, value) for n, value in report.user_properties if n not in internal]

    @pytest.hookimpl(tryfirst=True)
    def pytest_sessionfinish(self, session: pytest.Session, exitstatus: int) -> None:
        self.config.option.keyword = ""  # under workers the controller still has it
        self.thin_out()
        self.learn(self.config.stash.get(SUMMARY, {"claims": {}, "not_offered": []}))
        self.verdicts = collect(self.cases, self.not_offered)
        finished = exitstatus in (
            pytest.ExitCode.OK,
            pytest.ExitCode.TESTS_FAILED,
            pytest.ExitCode.NO_TESTS_COLLECTED,
        )
        listing = self.config.option.claims or self.config.option.collectonly
        if self.verdicts and finished and not listing:
            session.exitstatus = int(self.fails())
        body = self.body(session.exitstatus)
        if self.lines:
            self.lines.close(body if finished else body[:-1])
        if self.config.option.report and not listing:
            self.write_reports(session, [self.header, *body], finished)

    def thin_out(self) -> None:
        """Forget what pytest would look through once more for each failure: silent set-ups and teardowns."""
        reporter = self.config.pluginmanager.get_plugin("terminalreporter")
        if reporter:
            reporter.stats[""] = [r for r in reporter.stats.get("", []) if r.sections]

    def fails(self) -> bool:
        """Whether anything breaks or errs, or nothing was offered by any implementation."""
        found = self.verdicts.values()
        declined = strict(self.config) and any(v.cases and len(v.judged) < len(v.cases) for v in found)
        return bool(self.other_failures or self.idle() or declined or any(verdict.fails for verdict in found))

    def idle(self) -> bool:
        """Whether there were claims to judge, and no implementation offered anything for any of them."""
        judging = [verdict for verdict in self.verdicts.values() if verdict.key[1]]
        sizing = self.config.stash[SETUP].sizing  # a model beyond the interface is sized all the same
        return bool(judging) and not sizing and not any(verdict.judged for verdict in judging)

    def body(self, status: int) -> list[dict[str, Any]]:
        """The lines of a finished run, after the header."""
        claims = [report.claim_line(claim) for claim in report.in_reading_order(self.claims.values())]
        literature = [report.cited_line(row) for row in cited()]
        tables = [report.receipt_line(key, text) for (key, _), (_, text) in sorted(self.tables.items())]
        verdicts = [report.verdict_line(self.verdicts[key]) for key in sorted(self.verdicts)]
        footer = {"kind": "footer", "counts": counts(self.verdicts.values()), "exit_status": int(status)}
        return [*claims, *literature, *tables, *verdicts, footer]

    def write_reports(self, session: pytest.Session, lines: list[dict[str, Any]], finished: bool) -> None:
        """--report: pages and summaries. One that cannot be written is an unusable option."""
        from harness.page import write
        from harness.runs import gathered

        lines = json.loads(json.dumps(lines))  # as a verdict file has them
        for path in self.config.option.report:
            try:
                size = write(path, [gathered(path, lines)]) if finished else 0
            except OSError as error:
                session.exitstatus = pytest.ExitCode.USAGE_ERROR
                self.reports.append(f"--report={path}: {error.strerror}; give a path that can be written")
            else:
                said = f"{size / 1e6:.2f} MB" if finished else "not written: the run did not finish"
                self.reports.append(f"{path}: {said}")

    def nothing_selected(self) -> str:
        sizing = "; with --config, from the claims about models" if self.config.stash[SETUP].sizing else ""
        return (
            f"no claim was selected: -k takes topics, claims' ids and words of tests' names{sizing}; "
            f"pytest --claims lists topics and ids"
        )

    def pytest_terminal_summary(self, terminalreporter: Any, exitstatus: int) -> None:
        if self.config.option.claims or self.config.option.collectonly:
            return
        if not self.verdicts:
            if exitstatus == pytest.ExitCode.NO_TESTS_COLLECTED:
                terminalreporter.write_line(self.nothing_selected())
            return
        if self.config.option.receipts:
            terminalreporter.section("receipts")
            for line in report.receipts(self.tables):
                terminalreporter.write_line(line)
        terminalreporter.section("verdicts")
        labels = [impl.label for impl in self.config.stash[SETUP].impls]
        for line in [*report.summary(list(self.claims.values()), self.verdicts, labels), *self.reports]:
            terminalreporter.write_line(line)
        if self.idle():
            terminalreporter.write_line(
                "no claim judged anything, which fails the run: it offers nothing that these claims need, "
                "or not in this dtype or on this device"
            )
