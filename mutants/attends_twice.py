"""Computes the scores and their average twice in every layer, once for the answer and once for a log.

The answers are right; what grows with the square of the tokens doubles.
"""

import refimpl

MUST_BREAK = ("cost.layer-flops", "cost.quadratic-share", "cost.layer-grows-less-than-the-square")
SPREADS = ("generation", "training")


def attention(q, k, v, **options):
    refimpl.attention(q, k, v, **options)
    return refimpl.attention(q, k, v, **options)


def Transformer(config, *, device, dtype):
    return refimpl.Transformer(config, device=device, dtype=dtype, attention=attention)
