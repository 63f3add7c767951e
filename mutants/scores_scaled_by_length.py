"""Scales scores by the number of tokens in the pass, so that long and short passes are one temperature.

Training at one length hides it; a position's scores then depend on how much text follows.
"""

import math

import refimpl

MUST_BREAK = ("training.one-pass-is-n-passes", "generation.cached-equals-full")
SPREADS = ("attention", "causal", "contract", "gqa", "heads", "scale")


def attention(q, k, v, *, causal=False, scale=None):
    scale = q.shape[-1] ** -0.5 if scale is None else scale
    return refimpl.attention(q, k, v, causal=causal, scale=scale * math.log(1 + k.shape[-2]))
