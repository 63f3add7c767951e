"""A toy specification and its implementations, run through pytest inside a test."""

import json
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent

SPEC = '''
import pytest, torch
from harness import SMALL, agrees, at_least, claim, close, formula, gradients, same

@claim("attention.formula", needs="attention", source="toy")
@pytest.mark.parametrize("n_q", [1, 3])
def test_formula(impl, draw, n_q):
    """Attention is its formula."""
    q, k, v = draw(2, 6, n_q, 8), draw(2, 2, 5, 8), draw(2, 2, 5, 7)
    agrees(impl.attention, formula.attention, q, k, v, causal=True, scale=0.4, what="output")

@claim("attention.gradient", needs="attention", source="toy", gradients=True)
def test_gradient(impl, draw):
    """Attention carries a gradient."""
    q, k, v = draw(1, 2, 3, 4).requires_grad_(), draw(1, 2, 3, 4), draw(1, 2, 3, 4)
    at_least(gradients(impl.attention(q, k, v, scale=0.4), q)[0].abs().max(), 1e-3, "gradient")

@claim("norm.formula", needs="rms_norm", source="toy")
def test_norm(impl, draw):
    """RMSNorm is its formula."""
    agrees(impl.rms_norm, formula.rms_norm, draw(3, 8), draw(8), eps=1e-5, what="output")

@claim("generation.cached", needs="Transformer", through=("attention", "rope"), source="toy")
def test_cached(build, draw):
    """Cached decoding repeats the full pass."""
    model = build(SMALL)
    tokens = draw.tokens(SMALL.n_vocab, 2, 5)
    with torch.no_grad():
        full, cache = model(tokens), model.new_cache()
        parts = torch.cat([model(part, cache) for part in tokens.split([2, 3], 1)], 1)
    close(parts, full, 1e-3, "logits")

@claim("bytes.four", needs=None, source="toy")
def test_four():
    """A float32 has four bytes."""
    same(torch.float32.itemsize, 4, "bytes")
'''

ATTENTION = """
import torch
def attention(q, k, v, *, causal=False, scale=None):
    g = q.shape[1] // k.shape[1]
    k, v = k.repeat_interleave(g, 1), v.repeat_interleave(g, 1)
    s = q @ k.mT * (q.shape[-1] ** -0.5 if scale is None else scale)
    if causal:
        s = s.masked_fill(torch.ones(s.shape[-2:]).triu(1 + k.shape[2] - q.shape[2]).bool(), -torch.inf)
    return s.softmax(-1) @ v
"""


class Toy:
    """pytest run on the toy specification, in this process or in one of its own."""

    def __init__(self, pytester: pytest.Pytester) -> None:
        self.pytester = pytester
        pytester.makeconftest('pytest_plugins = ["harness.plugin"]')
        pytester.makefile(".toml", pyproject="[tool.pytest]\nstrict = true\ntestpaths = ['spec']\n")
        pytester.mkdir("spec")
        self.spec(SPEC)

    def spec(self, text: str) -> None:
        (self.pytester.path / "spec" / "test_toy.py").write_text(text)

    def impl(self, text: str, name: str = "mine") -> str:
        (self.pytester.path / f"{name}.py").write_text(text)
        return f"--impl={self.pytester.path / name}.py"

    def __call__(self, *options: str, alone: bool = False) -> pytest.RunResult:
        plugins = ("-p", "no:syrupy", "-p", "no:benchmark", "-p", "no:cacheprovider")
        run = self.pytester.runpytest_subprocess if alone else self.pytester.runpytest_inprocess
        with pytest.MonkeyPatch.context() as patch:
            patch.setenv("PYTHONPATH", str(ROOT))
            return run(*plugins, "--verdicts=out.jsonl", *options)

    def lines(self) -> list[dict]:
        return [json.loads(line) for line in (self.pytester.path / "out.jsonl").read_text().splitlines()]

    def verdicts(self) -> dict[str, str]:
        """claim -> verdict, for the one implementation of the last run."""
        return {line["claim"]: line["verdict"] for line in self.lines() if line["kind"] == "verdict"}

    def detail(self, claim: str) -> str:
        return next(x["detail"] for x in self.lines() if x["kind"] == "verdict" and x["claim"] == claim)
