"""Every verdict, from what an implementation does to the line a person reads."""

import pytest

from selftest.toy import ATTENTION, SPEC, Toy

pytest_plugins = "pytester"


@pytest.fixture
def toy(pytester):
    return Toy(pytester)


def wrapped(body):
    """A correct attention whose answer goes through `body`."""
    return ATTENTION.replace("def attention", "def right") + (
        f"def attention(q, k, v, **options):\n    out = right(q, k, v, **options)\n    {body}\n"
    )


def test_the_reference_holds_everywhere_and_exits_with_0(toy):
    result = toy()
    assert result.ret == 0
    assert set(toy.verdicts().values()) == {"holds"}
    assert len(toy.verdicts()) == 5


def test_one_function_is_judged_alone_and_inside_a_composed_model(toy):
    result = toy(toy.impl(ATTENTION))
    assert result.ret == 0
    assert toy.verdicts() == {
        "attention.formula": "holds",
        "attention.gradient": "holds",
        "norm.formula": "not offered",
        "generation.cached": "holds",
        "bytes.four": "holds",
    }
    composed = {x["claim"]: x["composed"] for x in toy.lines() if x["kind"] == "verdict"}
    assert composed == {name: name == "generation.cached" for name in composed}
    result.stdout.fnmatch_lines(["generation.cached*holds (composed)", "*offers no rms_norm: mine (1)*"])


@pytest.mark.parametrize(
    "body, verdict, says",
    [
        ("return out[..., :-1]", "BREAKS", "returned shape"),
        ("return (out, None)", "BREAKS", "returned a tuple"),
        ("return out.numpy(force=True)", "BREAKS", "returned a ndarray"),
        ("return None", "BREAKS", "returned a NoneType"),
        ("return out * float('nan')", "BREAKS", "nan"),
        ("return out + 0.01", "BREAKS", "measured"),
        ("raise ValueError('tile size')", "error", "attention raised ValueError: tile size"),
        ("raise NotImplementedError", "error", "attention raised NotImplementedError"),
        ("raise NotImplementedError('no kernel')", "error", "no kernel"),
        ("assert q.shape[2] > 99, 'too short'", "error", "attention raised AssertionError: too short"),
        ("raise NotImplementedError('not offered: long ones')", "not offered", "long ones"),
    ],
)
def test_what_an_answer_is_decides_the_verdict(toy, body, verdict, says):
    result = toy(toy.impl(wrapped(body)))
    assert toy.verdicts()["attention.formula"] == verdict
    assert says in toy.detail("attention.formula")
    assert toy.verdicts()["bytes.four"] == "holds", "every other claim still gets its verdict"
    assert result.ret == 1 or verdict == "not offered"
    assert "harness/" not in result.stdout.str(), "no traceback from inside the harness"


def test_a_failure_gives_the_figures_the_call_and_the_command(toy):
    result = toy(toy.impl(wrapped("return out + 0.01")), "-k", "attention.formula")
    result.stdout.fnmatch_lines(
        [
            "attention.formula BREAKS for mine on cpu float32",
            "    claim: Attention is its formula.",
            "    output at *: measured *, expected * within *",
            "    last call: attention((2, 6, 1, 8), (2, 2, 5, 8), (2, 2, 5, 7), causal=True, scale=0.4)",
            "    again: pytest 'spec/test_toy.py::test_formula*' --impl=*mine.py *--dtype=float32",
        ]
    )


def test_some_declined_cases_are_counted_and_fail_only_under_strict(toy):
    declines = toy.impl(
        wrapped("if q.shape[2] == 1: raise NotImplementedError('not offered: one query')\n    return out")
    )
    result = toy(declines)
    assert result.ret == 0
    result.stdout.fnmatch_lines(["attention.formula*holds (1 of 2)"])
    assert toy(declines, "--strict").ret == 1


def test_an_answer_without_gradient_breaks_the_claims_that_need_one(toy):
    toy(toy.impl(wrapped("return out.detach()")))
    assert toy.verdicts()["attention.gradient"] == "BREAKS"
    assert toy.verdicts()["attention.formula"] == "holds"
    toy(toy.impl("GRADIENTS = False\n" + wrapped("return out.detach()")))
    assert toy.verdicts()["attention.gradient"] == "not offered"


def test_a_case_that_calls_nothing_is_an_error_of_the_spec(toy):
    toy.spec(
        SPEC.replace(
            "at_least(gradients(impl.attention(q, k, v, scale=0.4), q)[0].abs().max()", "at_least(1.0"
        )
    )
    assert toy().ret == 1
    assert toy.verdicts()["attention.gradient"] == "error"
    assert "vacuous" in toy.detail("attention.gradient")


def test_constructing_a_model_is_no_call(toy):
    toy.spec(SPEC.split("    tokens = draw.tokens")[0])
    assert toy.impl  # the remaining claims still run
    toy()
    assert "vacuous" in toy.detail("generation.cached")


def test_an_implementation_that_offers_nothing_judged_exits_with_1(toy):
    result = toy(toy.impl("def rope(x, positions, *, base=1e4): return x"), "-k", "norm")
    assert result.ret == 1
    assert toy.verdicts() == {"norm.formula": "not offered"}
    result.stdout.fnmatch_lines(["no claim judged anything, which fails the run*"])


@pytest.mark.parametrize(
    "key, says",
    [
        ("'emb'", "load_state_dict raised KeyError: 'emb'"),
        ("'emb'", "Hugging Face Llama's names"),
        ("1000 * 'long'", " ..."),
    ],
)
def test_weights_that_a_model_does_not_take_are_its_own_error(toy, key, says):
    refuses = f"    def load_state_dict(self, weights): raise KeyError({key})\n"
    toy(toy.impl("import refimpl\nclass Transformer(refimpl.Transformer):\n" + refuses))
    assert toy.verdicts()["generation.cached"] == "error"
    assert says in toy.detail("generation.cached")


def test_a_model_without_caches_breaks_by_what_it_lacks(toy):
    toy(
        toy.impl(
            "import refimpl\n"
            "class Transformer:\n"
            "    def __init__(self, config, **where): self.model = refimpl.Transformer(config, **where)\n"
            "    def __call__(self, tokens): return self.model(tokens)\n"
            "    def load_state_dict(self, weights): self.model.load_state_dict(weights)\n"
        )
    )
    assert toy.verdicts()["generation.cached"] == "BREAKS"
    assert "the model has no new_cache" in toy.detail("generation.cached")


@pytest.mark.parametrize(
    "raises, says",
    [
        ("raise SystemExit(3)", "attention raised SystemExit: 3"),
        ("raise TypeError('got unsupported BFloat16')", "DTYPES = "),
        ("raise RuntimeError('a Tensor that requires grad')", "GRADIENTS = False"),
    ],
)
def test_an_error_is_signed_and_may_come_with_a_hint(toy, raises, says):
    assert toy(toy.impl(wrapped(raises))).ret == 1
    assert toy.verdicts()["attention.formula"] == "error"
    assert says in toy.detail("attention.formula")


def test_what_it_says_of_itself_is_heard(toy):
    toy(toy.impl("DTYPES = ['float64']\n" + ATTENTION))
    assert toy.verdicts()["attention.formula"] == "not offered"
    assert "supports float64 only" in toy.detail("attention.formula")
    toy(toy.impl("DEVICES = ['cuda']\n" + ATTENTION))
    assert "runs on cuda only" in toy.detail("attention.formula")
    toy(toy.impl("from refimpl import Transformer\nDIFFERS = {'generation': 'no cache'}"))
    assert "differs by design: no cache" in toy.detail("generation.cached")


KNOWN = "KNOWN_BREAKS = [{'claim': 'attention.formula', 'kind': 'defect', 'reason': 'issue 7'%s}]\n"


def test_a_known_break_is_shown_and_does_not_fail_the_run(toy):
    result = toy(toy.impl(KNOWN % "" + wrapped("return out + 0.01")), "-k", "attention.formula")
    assert result.ret == 0
    assert toy.verdicts()["attention.formula"] == "breaks (known)"
    assert "defect: issue 7" in toy.detail("attention.formula")


def test_a_known_break_that_holds_fails_the_run_once_all_its_cases_ran(toy):
    fixed = toy.impl(KNOWN % "" + ATTENTION)
    result = toy(fixed)
    assert result.ret == 1
    result.stdout.fnmatch_lines(["*attention.formula holds; take it out of KNOWN_BREAKS*"])
    one_case = "spec/test_toy.py::test_formula[mine-cpu-float32-1]"
    assert toy(fixed, one_case).ret == 0


@pytest.mark.parametrize(
    "narrowed", [", 'dtype': 'float64'", ", 'device': 'mps'", ", 'versions': {'torch': '<1'}"]
)
def test_a_known_break_elsewhere_is_none_here(toy, narrowed):
    assert toy(toy.impl(KNOWN % narrowed + wrapped("return out + 0.01"))).ret == 1
    assert toy.verdicts()["attention.formula"] == "BREAKS"


def test_a_topleft_mask_breaks_short_queries_and_cached_decoding(toy):
    topleft = ATTENTION.replace("triu(1 + k.shape[2] - q.shape[2])", "triu(1)")
    assert toy(toy.impl(topleft)).ret == 1
    assert toy.verdicts()["attention.formula"] == "BREAKS"
    assert toy.verdicts()["generation.cached"] == "BREAKS"


def test_numpy_inside_is_welcome(toy):
    numpy = """
import numpy as np, torch
GRADIENTS = False
def rms_norm(x, weight, *, eps=1e-6):
    x = x.numpy()
    return torch.from_numpy(x / np.sqrt((x * x).mean(-1, keepdims=True) + np.float32(eps)) * weight.numpy())
"""
    assert toy(toy.impl(numpy)).ret == 0
    assert toy.verdicts()["norm.formula"] == "holds"


def test_a_skip_inside_a_claim_is_an_error(toy):
    toy.spec(SPEC.replace('same(torch.float32.itemsize, 4, "bytes")', "pytest.skip('later')"))
    assert toy().ret == 1
    assert toy.verdicts()["bytes.four"] == "error"


def test_seeds_repeat_drawn_claims_and_name_the_seed_that_breaks(toy):
    rare = wrapped("return out + (0.01 if float(q.flatten()[0]) > 1.5 else 0)")
    result = toy(toy.impl(rare), "-k", "attention.formula", "--seeds=60")
    assert result.ret == 1
    result.stdout.fnmatch_lines(["    again: *--seed=*"])
    assert toy("--seeds=20").ret == 0


def test_several_dtypes_and_implementations_are_columns(toy):
    result = toy(toy.impl(ATTENTION), "--impl=refimpl", "--dtype=float32,float64")
    assert result.ret == 0
    result.stdout.fnmatch_lines(
        [
            "claim *on *mine cpu float32*mine cpu float64*refimpl cpu float32*refimpl cpu float64",
            "attention.formula*holds*holds*holds*holds",
            "norm.formula*not offered*not offered*holds*holds",
        ]
    )
