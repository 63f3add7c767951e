"""Fills hidden scores with -10: every future token leaks a ten-thousandth.

Any tolerance of 1e-4 passes it. Seen: lucidrains/nGPT-pytorch 11.
"""

from mutants.parts import hide, mix, scores

MUST_BREAK = ("causal.mask-matrix", "causal.never-sees-the-next", "causal.probe")
SPREADS = ("attention", "contract", "generation", "gqa", "training")


def attention(q, k, v, *, causal=False, scale=None):
    return mix(hide(scores(q, k, scale), causal, -10.0), q, v)
