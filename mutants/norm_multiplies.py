"""Multiplies by the root mean square where it should divide.

Where: mosaicml/llm-foundry issue 371. A stack of such blocks overflows.
"""

from mutants.parts import widen

MUST_BREAK = ("norm.output-has-unit-size", "norm.keeps-a-stack-finite", "norm.nonlinear-too")
SPREADS = ("contract", "lm-head", "training")


def rms_norm(x, weight, *, eps=1e-6):
    wide = widen(x)
    mean_square = wide.square().mean(dim=-1, keepdim=True)
    return (wide * (mean_square + eps).sqrt() * widen(weight)).to(x.dtype)
