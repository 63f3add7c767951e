"""The pytest plugin: options, fixtures, and the hooks that turn tests into verdicts."""

import gc
import json
from collections import Counter
from collections.abc import Callable, Generator
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pytest
import torch

from harness import checks, report
from harness.claims import Claim, clash, read
from harness.gather import SETUP, SUMMARY, Verdicts, cited, restored
from harness.inputs import Draw, Tape
from harness.load import DTYPES, Unusable
from harness.measure import Shapes
from harness.options import concerned, setup, strict
from harness.outcome import CALLED, outcome, words
from harness.receipts import Receipt, Table
from harness.select import CLAIM, Subject, leaves_out, misplaced, select, stray, subject_of, subjects
from harness.tested import Model, Tested
from harness.verdicts import HOLDS, KNOWN, NOT_OFFERED
from refimpl.config import ModelConfig
from refimpl.hardware import Card

N_CASES = pytest.StashKey[int]()
THREADS = pytest.StashKey[int]()
MADE = pytest.StashKey[dict[str, Table]]()
SHAPES = pytest.StashKey[dict[Any, tuple[Any, ...]]]()
COLLECTOR = pytest.StashKey[tuple[int, int, int]]()
TAPES = pytest.StashKey[tuple[Any, dict[str, Tape]]]()


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
    add("--report", action="append", metavar="PATH.html|PATH.md",
        help="write a page, or a Markdown summary; repeatable")  # fmt: skip
    add("--config", action="append", metavar="PATH|NAME",
        help="size this model alone: a config.json, or a published model's name; repeatable")  # fmt: skip
    add("--card", default="h100-80gb", metavar="NAME|memory=..,bandwidth=..,flops=..",
        help="the accelerator to size for: a100-80gb, h100-80gb (default), h200, or your own")  # fmt: skip


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "claim(id, needs, source, ...): the claim a test judges")
    config.addinivalue_line("markers", "receipts(topic): locks the tables of a topic")
    config.addinivalue_line("markers", "slow: small experiments, left out of the default run")
    try:
        config.stash[SETUP] = setup(config)
    except Unusable as error:
        raise pytest.UsageError(str(error)) from None
    if config.stash[SETUP].sizing:
        config.option.receipts = True
        if not hasattr(config, "workerinput"):
            notes = [f"{model}: {note}" for model in config.stash[SETUP].models for note in model.notes]
            for note in notes:
                config.issue_config_time_warning(pytest.PytestConfigWarning(note), stacklevel=2)
    if not gc.get_freeze_count():  # a run inside a run leaves that to the outer one
        config.stash[COLLECTOR] = gc.get_threshold()
        gc.freeze()  # all of torch is no garbage, and looking through it for some takes seconds
        gc.set_threshold(20_000)
    config.stash[SHAPES] = {}
    config.stash[THREADS] = torch.get_num_threads()
    torch.set_num_threads(1)  # tiny tensors run several times faster
    torch.backends.cuda.matmul.allow_tf32 = False
    torch.backends.cudnn.allow_tf32 = False
    if config.option.claims and config.pluginmanager.has_plugin("syrupy"):
        config.pluginmanager.unregister(name="syrupy")  # nothing runs, and no receipt is to count as unused
    if getattr(config.option, "maxworkerrestart", "") is None:
        config.option.maxworkerrestart = "1000"  # an implementation that kills every case still gets verdicts
    if not hasattr(config, "workerinput"):
        config.pluginmanager.register(Verdicts(config), "transformer-spec-verdicts")


def pytest_unconfigure(config: pytest.Config) -> None:
    if THREADS in config.stash:
        torch.set_num_threads(config.stash[THREADS])
    if COLLECTOR in config.stash:
        gc.set_threshold(*config.stash[COLLECTOR])
        gc.freeze()  # pytest ends with several full collections


# --- collection --------------------------------------------------------------------------------------


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Under -k rope only the file of that topic is read."""
    return leaves_out(collection_path, config.option.keyword) or None


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    marks = list(metafunc.definition.iter_markers("claim"))
    if marks:
        made = read_claim(metafunc.function, marks)
        found = subjects(made, metafunc.config.stash[SETUP])
        if found:
            metafunc.parametrize("subject", found, ids=str, indirect=True)
        if "model" in metafunc.fixturenames:
            models = concerned(made.needs, metafunc.config.stash[SETUP])
            metafunc.parametrize("model", models, ids=str)


def read_claim(function: Any, marks: list[pytest.Mark]) -> Claim:
    try:
        return read(function, marks)
    except ValueError as error:
        raise pytest.Collector.CollectError(f"the spec is malformed: {error}") from None


@pytest.hookimpl(wrapper=True)
def pytest_pycollect_makeitem(collector: Any, name: str, obj: Any) -> Generator[None, Any, Any]:
    """Read each test's claim once, and note how many cases it has for each subject."""
    items = yield
    functions = [i for i in items if isinstance(i, pytest.Function)] if isinstance(items, list) else []
    marks = list(functions[0].iter_markers("claim")) if functions else []
    if marks:
        made = read_claim(functions[0].function, marks)
        sizes = Counter(str(subject_of(item)) for item in functions)
        for item in functions:
            item.stash[CLAIM] = made
            item.stash[N_CASES] = sizes[str(subject_of(item))]
            # Failures are said in words: pytest's own traceback would cost more than most claims.
            item.repr_failure = lambda excinfo, style=None: ""  # type: ignore[method-assign,misc]
    return items


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_collection_modifyitems(
    config: pytest.Config, items: list[pytest.Item]
) -> Generator[None, None, None]:
    """Check the claims, select by -k ourselves, and turn what is not offered from items into facts."""
    problem = clash(list({item.stash[CLAIM]: None for item in items if CLAIM in item.stash}))
    wrong = (stray(item) or misplaced(item) for item in items)
    problem = problem or next(filter(None, wrong), "")
    if problem:
        raise pytest.UsageError(f"the spec is malformed: {problem}")
    expression, config.option.keyword = config.option.keyword, ""  # it has a meaning of its own here
    yield
    select(config, items, expression)
    if config.stash[SETUP].sizing:
        sized = [item for item in items if "model" in getattr(item, "callspec", NO_CASE).params]
        config.hook.pytest_deselected(items=[item for item in items if item not in set(sized)])
        items[:] = sized
    claims: dict[str, Claim] = {}
    absent: dict[tuple[str, ...], str] = {}
    kept = []
    for item in items:
        if CLAIM in item.stash:
            made, subject = item.stash[CLAIM], subject_of(item)
            claims[made.id] = made
            if subject.absent:
                absent |= {(made.id, *where): why for *where, why in subject.absent}
                continue
            item.user_properties += [
                ("claim", made.id),
                *zip(("impl", "device", "dtype"), subject.key(made)[1:], strict=True),
            ]
        kept.append(item)
    items[:] = kept
    summary = {"claims": {id: asdict(c) for id, c in claims.items()}, "not_offered": list(absent.items())}
    config.stash[SUMMARY] = summary
    if items:
        # Every worker's first report brings this along, even if that worker is lost later.
        items[0].user_properties.append(("summary", json.dumps(summary)))


def pytest_runtestloop(session: pytest.Session) -> bool | None:
    """--claims lists instead of running."""
    if not session.config.option.claims:
        return None
    write = session.config.get_terminal_writer().line
    claims = [Claim(**restored(c)) for c in session.config.stash[SUMMARY]["claims"].values()]
    for line in report.catalogue(claims, cited()):
        write(line)
    return True


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
def card(request: pytest.FixtureRequest) -> Card:
    """The accelerator that models are sized for."""
    return request.config.stash[SETUP].card


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
    case = [
        f"{k}={v}" for k, v in sorted(getattr(item, "callspec", NO_CASE).params.items()) if k != "subject"
    ]
    text, seed = "|".join([text, *case]), 0 if locked else item.config.option.seed
    function, tapes = item.config.stash.get(TAPES, (None, {}))
    if function != item.function:  # the implementations follow one another, test by test
        function, tapes = item.config.stash[TAPES] = (item.function, {})
    return Draw(text, seed, device, dtype, tapes.setdefault(text, []))


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
        made, subject = request.config.stash.setdefault(MADE, {}), subject_of(item)
        counted = not subject.impl or (subject.impl.spec, subject.device) == ("refimpl", "meta")

        def keep(*tables: Table) -> None:
            item.user_properties.extend(("receipt", t.to_json()) for t in tables)
            if counted:
                made.update((t.title, t) for t in tables)

        return keep
    snapshot = request.getfixturevalue("snapshot").use_extension(Receipt)

    def lock(*tables: Table) -> None:
        __tracebackhide__ = True
        assert "\n\n\n".join(map(str, tables)) + "\n" == snapshot

    return lock


@pytest.fixture
def made(request: pytest.FixtureRequest) -> Callable[[str, Callable[[], Table]], Table]:
    """made(title, build) is the table of that title which a claim of this run has counted on the reference,
    or a new one: for receipts tests, since counting a large model twice takes as long again."""
    tables = request.config.stash.setdefault(MADE, {})

    def find(title: str, build: Callable[[], Table]) -> Table:
        with Shapes(request.config.stash[SHAPES]):
            table = tables.get(title) or build()
        if table.title != title:
            raise ValueError(f"the table made is {table.title!r}, not {title!r}")
        return table

    return find


# --- running -----------------------------------------------------------------------------------------


def settle(seed: int) -> None:
    """What an implementation draws by itself, as dropout does, it draws again when a case runs again."""
    torch.default_generator.manual_seed(seed)
    if torch.cuda.is_initialized():
        torch.cuda.manual_seed_all(seed)


@pytest.hookimpl(tryfirst=True)
def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> bool | None:
    """Under --seeds, repeat a claim with drawn inputs, in one process and one case."""
    checks.seen.clear()
    settle(pyfuncitem.config.option.seed)
    n, drawn = pyfuncitem.config.option.seeds, pyfuncitem.funcargs.get("draw")
    if n == 1 or not isinstance(drawn, Draw) or CLAIM not in pyfuncitem.stash:
        return None
    arguments = {name: pyfuncitem.funcargs[name] for name in pyfuncitem._fixtureinfo.argnames}
    first = pyfuncitem.config.option.seed
    for seed in range(first, first + n):
        settle(seed)
        drawn.restart(seed)
        pyfuncitem.obj(**arguments)
    return True


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_call(item: pytest.Item) -> Generator[None, Any, Any]:
    """On "meta" what an operation comes to is looked up where it can be."""
    if CLAIM in item.stash and item.stash[CLAIM].on == "meta":
        with Shapes(item.config.stash[SHAPES]):
            return (yield)
    return (yield)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item, call: pytest.CallInfo[None]) -> Generator[None, Any, Any]:
    """Turn what a case did into its outcome, and say it in words."""
    made = yield
    if CLAIM not in item.stash or (call.when != "call" and call.excinfo is None):
        return made
    case = outcome(item, call)
    case.seconds, case.node = call.duration, item.nodeid
    case.n_cases = item.stash[N_CASES]
    made.user_properties = [*item.user_properties, ("case", json.dumps(vars(case)))]
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


# --- verdicts, in the controlling process ------------------------------------------------------------


@pytest.hookimpl(trylast=True)
def pytest_sessionfinish(session: pytest.Session) -> None:
    """A worker without a single item has no report to bring its summary along."""
    if hasattr(session.config, "workeroutput"):
        session.config.workeroutput["summary"] = session.config.stash.get(
            SUMMARY, {"claims": {}, "not_offered": []}
        )
