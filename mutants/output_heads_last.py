"""Returns (batch, n_q, n_heads, d_v) where the interface has heads before tokens.

Seen wherever two libraries with different layouts meet.
"""

from mutants.parts import hide, mix, scores

MUST_BREAK = ("heads.shapes-follow", "attention.formula")
SPREADS = ("causal", "contract", "cost", "generation", "gqa", "scale", "training")


def attention(q, k, v, *, causal=False, scale=None):
    return mix(hide(scores(q, k, scale), causal), q, v).transpose(1, 2)
