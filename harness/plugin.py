"""The pytest plugin: options, fixtures, and the hooks that turn tests into verdicts."""

import csv
import json
import os
import sys
import traceback
from collections import Counter
from collections.abc import Callable, Generator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import pytest
import torch

from harness import checks, report
from harness.claims import TOPICS, Claim, clash, read
from harness.inputs import Draw
from harness.load import DTYPES, Implementation, Unusable, load_all
from harness.receipts import Receipt, Table
from harness.tested import Deviation, Model, Tested
from harness.verdicts import BREAKS, ERROR, HOLDS, KNOWN, NOT_OFFERED, Case, Key, collect, counts
from refimpl.config import ModelConfig

DEVICES = {
    "cpu": lambda: True,
    "cuda": lambda: torch.cuda.is_available(),
    "mps": lambda: torch.backends.mps.is_available(),
}
ROOT = Path(__file__).parent.parent


# --- options -----------------------------------------------------------------------------------------


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("transformer-spec", "the executable specification")
    add = group.addoption
    add("--impl", action="append", metavar="=PATH.py|pkg.module[:object]",
        help="implementation to judge; repeatable; write it with '=' (default: refimpl)")  # fmt: skip
    add("--device", action="append", metavar="NAME",
        help="cpu, cuda or mps; repeatable, or a comma list (default: every device present)")  # fmt: skip
    add("--dtype", action="append", metavar="NAME",
        help=f"{', '.join(DTYPES)}; repeatable, or a comma list (default: float32)")  # fmt: skip
    add("--seed", type=int, default=0, metavar="N", help="shift all drawn inputs (default: 0)")
    add("--seeds", type=int, default=1, metavar="N",
        help="repeat every claim with drawn inputs over N seeds")  # fmt: skip
    add("--receipts", action="store_true", help="print the tables behind the claims that ran")
    add("--claims", action="store_true", help="list the claims and exit")
    add("--verdicts", metavar="PATH.jsonl", help="write the verdicts as JSON lines")


@dataclass
class Setup:
    """What a run judges, and where."""

    impls: list[Implementation]
    devices: list[str]
    dtypes: list[str]


SETUP = pytest.StashKey[Setup]()
SUMMARY = pytest.StashKey[dict[str, Any]]()
CLAIM = pytest.StashKey[Claim]()
N_CASES = pytest.StashKey[int]()
CALLED = pytest.StashKey[Tested]()
THREADS = pytest.StashKey[int]()


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "claim(id, needs, source, ...): the claim a test judges")
    config.addinivalue_line("markers", "receipts(topic): locks the tables of a topic")
    config.addinivalue_line("markers", "slow: small experiments, left out of the default run")
    try:
        config.stash[SETUP] = setup(config)
    except Unusable as error:
        raise pytest.UsageError(str(error)) from None
    config.stash[THREADS] = torch.get_num_threads()
    torch.set_num_threads(1)  # tiny tensors run several times faster
    torch.backends.cuda.matmul.allow_tf32 = False
    torch.backends.cudnn.allow_tf32 = False
    if not hasattr(config, "workerinput"):
        config.pluginmanager.register(Verdicts(config), "transformer-spec-verdicts")


def pytest_unconfigure(config: pytest.Config) -> None:
    if THREADS in config.stash:
        torch.set_num_threads(config.stash[THREADS])


def setup(config: pytest.Config) -> Setup:
    """Read the options. Raises Unusable with one line."""
    option = config.option
    here = str(config.invocation_params.dir)
    if here not in sys.path:
        sys.path.insert(0, here)  # so that pkg.module means a user's own package too
    devices = chosen("--device", option.device, DEVICES)
    for name in devices:
        if not DEVICES[name]():
            raise Unusable(f"--device={name}: no such device here; present: {', '.join(present())}")
    devices = devices or present()
    if "mps" in devices and os.environ.get("PYTORCH_ENABLE_MPS_FALLBACK", "0") != "0":
        raise Unusable("unset PYTORCH_ENABLE_MPS_FALLBACK: it would label CPU results as MPS")
    dtypes = chosen("--dtype", option.dtype, DTYPES) or ["float32"]
    if option.seeds < 1:
        raise Unusable(f"--seeds={option.seeds}: give a number of seeds of at least 1")
    if option.verdicts and not Path(option.verdicts).absolute().parent.is_dir():
        raise Unusable(f"--verdicts={option.verdicts}: no such folder; give a path in an existing one")
    return Setup(load_all(option.impl or ["refimpl"]), devices, dtypes)


def strict(config: pytest.Config) -> bool:
    """--strict is pytest's own option; here it also fails the cases that an implementation declines."""
    return "strict=true" in (config.option.override_ini or ())


def chosen(flag: str, given: list[str] | None, allowed: Any) -> list[str]:
    names = [name for text in given or [] for name in text.split(",")]
    for name in names:
        if name not in allowed:
            raise Unusable(f"{flag}={name}: unknown; give one of {', '.join(allowed)}")
    return list(dict.fromkeys(names))


def present() -> list[str]:
    return [name for name, there in DEVICES.items() if there()]


# --- collection --------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Subject:
    """Whom a case judges, and where. With a reason it stands for a claim that is not offered there."""

    impl: Implementation | None
    device: str
    dtype: str
    reason: str = ""

    def key(self, claim: Claim) -> Key:
        return (claim.id, self.impl.label if self.impl else "", self.device, self.dtype)

    def __str__(self) -> str:
        who = self.impl.label if self.impl else ""
        return "-".join(filter(None, (who, self.device, self.dtype)))


def subjects(claim: Claim, run: Setup) -> list[Subject]:
    if not claim.needs:
        return [Subject(None, device, "") for device in run.devices] if claim.per else []
    if claim.on == "meta":
        spots = [("meta", "")]
    else:
        spots = [(d, t) for d in run.devices for t in claim.dtypes or run.dtypes]
    return [
        Subject(impl, device, dtype, impl.refuses(claim, device, dtype))
        for impl in run.impls
        for device, dtype in spots
    ]


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    marks = list(metafunc.definition.iter_markers("claim"))
    if marks:
        found = subjects(read_claim(metafunc.function, marks), metafunc.config.stash[SETUP])
        if found:
            metafunc.parametrize("subject", found, ids=str, indirect=True)


def read_claim(function: Any, marks: list[pytest.Mark]) -> Claim:
    try:
        return read(function, marks)
    except ValueError as error:
        raise pytest.Collector.CollectError(f"the spec is malformed: {error}") from None


@pytest.hookimpl(wrapper=True)
def pytest_pycollect_makeitem(collector: Any, name: str, obj: Any) -> Generator[None, Any, Any]:
    """Read each test's claim once, and note how many cases it has for each subject."""
    items = yield
    functions = [item for item in items or () if isinstance(item, pytest.Function)] if isinstance(items, list) else []
    marks = list(functions[0].iter_markers("claim")) if functions else []
    if marks:
        made = read_claim(functions[0].function, marks)
        sizes = Counter(str(subject_of(item)) for item in functions)
        for item in functions:
            item.stash[CLAIM] = made
            item.stash[N_CASES] = sizes[str(subject_of(item))]
    return items


def subject_of(item: Any) -> Subject:
    callspec = getattr(item, "callspec", None)
    found = callspec.params.get("subject") if callspec else None
    return found or Subject(None, "", "")


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_collection_modifyitems(
    config: pytest.Config, items: list[pytest.Item]
) -> Generator[None, None, None]:
    """Check the claims, select by -k ourselves, and turn what is not offered from items into facts."""
    problem = clash(list({item.stash[CLAIM]: None for item in items if CLAIM in item.stash}))
    problem = problem or next((stray(item) for item in items if stray(item)), "")
    if problem:
        raise pytest.UsageError(f"the spec is malformed: {problem}")
    expression, config.option.keyword = config.option.keyword, ""  # it has a meaning of its own here
    yield
    select(config, items, expression)
    summary: dict[str, Any] = {"claims": {}, "not_offered": []}
    kept = []
    for item in items:
        if CLAIM in item.stash:
            made, subject = item.stash[CLAIM], subject_of(item)
            summary["claims"][made.id] = asdict(made)
            if subject.reason:
                summary["not_offered"].append((subject.key(made), subject.reason))
                continue
            item.user_properties += [("claim", made.id), *zip(("impl", "device", "dtype"), subject.key(made)[1:], strict=True)]
        kept.append(item)
    items[:] = kept
    config.stash[SUMMARY] = summary
    if items:
        # Every worker's first report brings this along, even if that worker is lost later.
        items[0].user_properties.append(("summary", json.dumps(summary)))


def stray(item: pytest.Item) -> str:
    """A test in spec/ that carries neither a claim nor receipts."""
    in_spec = "spec" in Path(item.path).relative_to(item.config.rootpath).parts if item.path.is_relative_to(item.config.rootpath) else False
    if in_spec and CLAIM not in item.stash and not item.get_closest_marker("receipts"):
        return f"{item.nodeid} carries no claim"
    return ""


def select(config: pytest.Config, items: list[pytest.Item], expression: str) -> None:
    """-k, where a topic or a claim's id matches that claim exactly, and any other word as in pytest."""
    if not expression.strip():
        return
    from _pytest.mark import KeywordMatcher
    from _pytest.mark.expression import Expression

    try:
        compiled = Expression.compile(expression.strip())
    except SyntaxError as error:
        raise pytest.UsageError(f"-k {expression!r} is no keyword expression: {error}") from None
    ids = {item.stash[CLAIM].id for item in items if CLAIM in item.stash}

    def matches(item: pytest.Item) -> Callable[..., bool]:
        mark = item.get_closest_marker("receipts")
        topic = mark.args[0] if mark else item.stash[CLAIM].topic if CLAIM in item.stash else ""
        own = (topic, item.stash[CLAIM].id) if CLAIM in item.stash else (topic,)
        usual = KeywordMatcher.from_item(item)
        return lambda word: word in own if topic and (word in TOPICS or word in ids) else usual(word) or word in own[-1]

    chosen_items = [item for item in items if compiled.evaluate(matches(item))]
    dropped = [item for item in items if item not in set(chosen_items)]
    if dropped:
        config.hook.pytest_deselected(items=dropped)
        items[:] = chosen_items


def pytest_runtestloop(session: pytest.Session) -> bool | None:
    """--claims lists instead of running."""
    if not session.config.option.claims:
        return None
    write = session.config.get_terminal_writer().line
    claims = [Claim(**restored(c)) for c in session.config.stash[SUMMARY]["claims"].values()]
    for line in report.catalogue(claims, cited()):
        write(line)
    return True


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


# --- fixtures ----------------------------------------------------------------------------------------


@pytest.fixture(autouse=True)
def subject(request: pytest.FixtureRequest) -> Subject | None:
    """Whom this case judges, and where."""
    return getattr(request, "param", None)


@pytest.fixture
def impl(request: pytest.FixtureRequest, subject: Subject) -> Tested:
    """The implementation under test: impl.attention, impl.rope, ..."""
    if subject is None or subject.impl is None:
        raise pytest.UsageError("a test that takes impl says in its claim what it needs")
    item = request.node
    item.stash[CALLED] = Tested(subject.impl, item.stash[CLAIM])
    return item.stash[CALLED]


@pytest.fixture
def device(subject: Subject | None) -> str:
    """The tested device's name; "cpu" where nothing is tested."""
    return subject.device if subject and subject.device else "cpu"


@pytest.fixture
def dtype(subject: Subject | None) -> torch.dtype:
    """The tested dtype; float32 where nothing is tested."""
    return DTYPES[subject.dtype] if subject and subject.dtype else torch.float32


@pytest.fixture
def draw(request: pytest.FixtureRequest, subject: Subject | None, device: str, dtype: torch.dtype) -> Draw:
    """Drawn inputs for this claim and case: draw(2, 6, 5, 8) is standard normal."""
    item = request.node
    locked = CLAIM not in item.stash
    text = item.stash[CLAIM].id if not locked else item.nodeid
    case = [f"{k}={v}" for k, v in sorted(getattr(item, "callspec", NO_CASE).params.items()) if k != "subject"]
    seed = 0 if locked else item.config.option.seed
    return Draw("|".join([text, *case]), seed, device, dtype)


class NO_CASE:
    params: dict[str, Any] = {}


@pytest.fixture
def build(impl: Tested, draw: Draw, device: str, dtype: torch.dtype) -> Callable[..., Model]:
    """build(config) -> the implementation's model with drawn weights; build(config, weights) with those."""

    def make(config: ModelConfig, weights: dict[str, Any] | None = None) -> Model:
        model = impl.Transformer(config, device=device, dtype=dtype)
        model.load_state_dict(draw.weights(config) if weights is None else weights)
        return model

    return make


@pytest.fixture
def receipt(request: pytest.FixtureRequest) -> Callable[..., None]:
    """receipt(table) keeps a table for --receipts; in a receipts test it is compared with the locked one."""
    item = request.node
    if CLAIM in item.stash:
        return lambda *tables: item.user_properties.extend(("receipt", t.to_json()) for t in tables)
    snapshot = request.getfixturevalue("snapshot").use_extension(Receipt)

    def lock(*tables: Table) -> None:
        __tracebackhide__ = True
        assert "\n\n\n".join(map(str, tables)) + "\n" == snapshot

    return lock


# --- running -----------------------------------------------------------------------------------------


@pytest.hookimpl(tryfirst=True)
def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> bool | None:
    """Under --seeds, repeat a claim with drawn inputs, in one process and one case."""
    checks.seen.clear()
    n, drawn = pyfuncitem.config.option.seeds, pyfuncitem.funcargs.get("draw")
    if n == 1 or drawn is None or CLAIM not in pyfuncitem.stash:
        return None
    arguments = {name: pyfuncitem.funcargs[name] for name in pyfuncitem._fixtureinfo.argnames}
    first = pyfuncitem.config.option.seed
    for seed in range(first, first + n):
        drawn.restart(seed)
        pyfuncitem.obj(**arguments)
    return True


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item, call: pytest.CallInfo[None]) -> Generator[None, Any, Any]:
    """Turn what a case did into its outcome, and say it in words."""
    made = yield
    if CLAIM not in item.stash or (call.when != "call" and call.excinfo is None):
        return made
    case = outcome(item, call)
    case.seconds, case.node = call.duration, item.nodeid
    case.n_cases = item.stash[N_CASES]
    made.user_properties = [*item.user_properties, ("case", json.dumps(asdict(case)))]
    if case.outcome == HOLDS:
        made.outcome = "passed"
    elif case.outcome == KNOWN:
        made.outcome, made.wasxfail = "skipped", case.detail
    elif case.outcome == NOT_OFFERED and not strict(item.config):
        made.outcome = "skipped"
        made.longrepr = (str(item.path), item.location[1] or 0, f"not offered: {case.detail}")
    else:
        made.outcome, made.longrepr = "failed", words(item, case)
    return made


def outcome(item: pytest.Item, call: pytest.CallInfo[None]) -> Case:
    """The case's outcome, with the figure that decided it."""
    claim, subject, tested = item.stash[CLAIM], subject_of(item), item.stash.get(CALLED, None)
    worst = max(checks.seen, key=lambda f: f.strain, default=checks.Figure("", None, None, 0.0))
    case = Case(HOLDS, what=worst.what, measured=worst.measured, expected=worst.expected, strain=worst.strain)
    case.composed = bool(tested and tested.composed)
    known = subject.impl.known(claim.id, subject.device, subject.dtype) if subject.impl else None
    case.known_kind = known["kind"] if known else ""
    if call.excinfo is None:
        unused = uncalled(claim, tested)
        if unused:
            case.outcome, case.detail = ERROR, f"vacuous: the case passes without a call to {unused}"
        return case
    error = call.excinfo.value
    raised_by = getattr(error, "raised_by", "")
    case.detail = f"{type(error).__name__}: {error}" if str(error) else type(error).__name__
    if isinstance(error, NotImplementedError) and str(error).startswith("not offered:"):
        case.outcome, case.detail = NOT_OFFERED, str(error).removeprefix("not offered:").strip()
    elif claim.on == "meta" and raised_by and not isinstance(error, Deviation):
        case.outcome, case.detail = NOT_OFFERED, f"cannot run on meta: {case.detail.splitlines()[0]}"
    elif isinstance(error, AssertionError) and not raised_by:
        case.outcome, case.detail = BREAKS, str(error)
        if not isinstance(error, checks.Breaks):
            case.what = case.measured = case.expected = None  # type: ignore[assignment]
            case.what, case.strain = "", 2.0
    else:
        by = f"{raised_by} raised" if raised_by else "the spec itself raised"
        case.outcome, case.detail = ERROR, f"{by} {case.detail}"
    if known and case.outcome in (BREAKS, ERROR):
        case.outcome, case.detail = KNOWN, f"{known['kind']}: {known['reason']} ({case.detail})"
    return case


def uncalled(claim: Claim, tested: Tested | None) -> str:
    """The interface names that a claim needs and a case never called."""
    calls = tested.calls if tested else {}
    return ", ".join(name for name in claim.needs if not calls.get(name))


def words(item: pytest.Item, case: Case) -> str:
    """A failure in words: the claim, the figures, the call, and how to see it again."""
    claim, subject, tested = item.stash[CLAIM], subject_of(item), item.stash.get(CALLED, None)
    who = f" for {subject.impl.label}" if subject.impl else ""
    where = f" on {report.place(claim, subject.device, subject.dtype)}"
    what = {NOT_OFFERED: "is declined"}.get(case.outcome, case.outcome)
    lines = [f"{claim.id} {what}{who}{where}", f"    claim: {claim.statement}"]
    lines += [f"    {line}" for line in case.detail.splitlines()]
    if case.outcome == ERROR:
        lines += user_frames(item)
    if tested and tested.last:
        lines.append(f"    last call: {tested.last}")
    return "\n".join([*lines, f"    again: {command(item)}"])


def user_frames(item: pytest.Item) -> list[str]:
    """Where the implementation raised: the frames outside harness, pytest and the spec."""
    error = sys.last_value if hasattr(sys, "last_value") else None
    hidden = (str(ROOT / "harness"), str(ROOT / "spec"), "_pytest", "pluggy")
    frames = traceback.extract_tb(error.__traceback__) if error else []
    own = [f for f in frames if not any(part in f.filename for part in hidden)]
    return [f"    at {f.filename}:{f.lineno} in {f.name}: {f.line}" for f in own[-3:]]


def command(item: pytest.Item) -> str:
    """The command that runs this one case again."""
    option, subject = item.config.option, subject_of(item)
    parts = ["pytest", f"'{item.nodeid}'"]
    if subject.impl:
        parts.append(f"--impl={subject.impl.spec}")
    if subject.device and subject.device != "meta":
        parts.append(f"--device={subject.device}")
    if subject.dtype and not item.stash[CLAIM].dtypes:
        parts.append(f"--dtype={subject.dtype}")
    drawn = item.funcargs.get("draw") if isinstance(item, pytest.Function) else None
    seed = getattr(drawn, "seed", option.seed)
    return " ".join([*parts, *([f"--seed={seed}"] if seed else [])])


# --- verdicts, in the controlling process ------------------------------------------------------------


class Verdicts:
    """Gathers every case, in one process or from workers, and says what they come to."""

    def __init__(self, config: pytest.Config) -> None:
        self.config = config
        self.cases: list[tuple[Key, Case]] = []
        self.started: dict[str, Key] = {}
        self.claims: dict[str, Claim] = {}
        self.not_offered: dict[Key, str] = {}
        self.tables: dict[tuple[str, str, str], str] = {}
        self.other_failures = 0
        self.lines: report.Lines | None = None

    def pytest_sessionstart(self) -> None:
        option, run = self.config.option, self.config.stash[SETUP]
        if option.verdicts:
            options = {
                "impl": [impl.spec for impl in run.impls],
                "device": run.devices,
                "dtype": run.dtypes,
                "seed": option.seed,
                "seeds": option.seeds,
                "keyword": option.keyword,
            }
            devices = {name: device_name(name) for name in run.devices}
            self.lines = report.Lines(option.verdicts, report.header_line(options, devices))

    def learn(self, summary: dict[str, Any]) -> None:
        self.claims |= {id: Claim(**restored(c)) for id, c in summary["claims"].items()}
        self.not_offered |= {tuple(key): reason for key, reason in summary["not_offered"]}

    def pytest_testnodedown(self, node: Any) -> None:
        self.learn(getattr(node, "workeroutput", {}).get("summary", {"claims": {}, "not_offered": []}))

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
        if report.when == "call":
            for name, text in report.user_properties:
                if name == "receipt":
                    who, where = said["impl"], f"{said['device']} {said['dtype']}".strip()
                    self.tables[who, where, json.loads(text)["title"]] = text

    @pytest.hookimpl(tryfirst=True)
    def pytest_sessionfinish(self, session: pytest.Session, exitstatus: int) -> None:
        self.config.option.keyword = ""  # under workers the controller still has it
        self.learn(self.config.stash.get(SUMMARY, {"claims": {}, "not_offered": []}))
        self.verdicts = collect(self.cases, self.not_offered)
        finished = exitstatus in (pytest.ExitCode.OK, pytest.ExitCode.TESTS_FAILED, pytest.ExitCode.NO_TESTS_COLLECTED)
        listing = self.config.option.claims or self.config.option.collectonly
        if self.verdicts and finished and not listing:
            session.exitstatus = int(self.fails())
        if self.lines:
            self.write(self.lines, session.exitstatus, finished)

    def fails(self) -> bool:
        """Whether anything breaks or errs, or nothing was offered by any implementation."""
        found = self.verdicts.values()
        judging = [verdict for verdict in found if verdict.key[1]]
        nothing = judging and not any(verdict.judged for verdict in judging)
        declined = strict(self.config) and any(v.cases and len(v.judged) < len(v.cases) for v in found)
        return bool(self.other_failures or nothing or declined or any(verdict.fails for verdict in found))

    def write(self, lines: report.Lines, status: int, finished: bool) -> None:
        for claim in report.in_reading_order(self.claims.values()):
            lines.write(report.claim_line(claim))
        for row in cited():
            lines.write(report.cited_line(row))
        for key in sorted(self.verdicts):
            lines.write(report.verdict_line(self.verdicts[key]))
        tally = counts(self.verdicts.values())
        lines.close({"counts": tally, "exit_status": int(status)} if finished else None)

    def pytest_terminal_summary(self, terminalreporter: Any) -> None:
        if not self.verdicts or self.config.option.claims or self.config.option.collectonly:
            return
        if self.config.option.receipts:
            terminalreporter.section("receipts")
            for line in report.receipts(self.tables):
                terminalreporter.write_line(line)
        terminalreporter.section("verdicts")
        labels = [impl.label for impl in self.config.stash[SETUP].impls]
        for line in report.summary(list(self.claims.values()), self.verdicts, labels):
            terminalreporter.write_line(line)


@pytest.hookimpl(trylast=True)
def pytest_sessionfinish(session: pytest.Session) -> None:
    """A worker without a single item has no report to bring its summary along."""
    if hasattr(session.config, "workeroutput"):
        session.config.workeroutput["summary"] = session.config.stash.get(SUMMARY, {"claims": {}, "not_offered": []})


def device_name(name: str) -> str:
    """The device as its maker names it."""
    import platform

    if name == "cuda":
        return torch.cuda.get_device_name()
    return platform.processor() or platform.machine()
