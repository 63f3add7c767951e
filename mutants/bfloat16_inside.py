"""Computes in bfloat16 whatever comes in.

Plausible to two digits; seen wherever an autocast is left on.
"""

from mutants.parts import hide, mix, scores

MUST_BREAK = ("attention.fast-is-exact", "attention.formula")
SPREADS = ("causal", "contract", "generation", "gqa", "heads", "scale", "training")


def attention(q, k, v, *, causal=False, scale=None):
    q16, k16, v16 = (x.bfloat16() for x in (q, k, v))
    return mix(hide(scores(q16, k16, scale), causal), q16, v16).to(q.dtype)
