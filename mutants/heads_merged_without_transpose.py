"""Reads (n_heads, n_q, d) memory as (n_q, n_heads, d): each token gets pieces of others.

One head, or one query, is right. Seen: jsbaan/transformer-from-scratch PR 6; reczoo/FuxiCTR 30.
"""

from mutants.parts import hide, mix, scores

MUST_BREAK = ("heads.never-interact", "attention.axis-roles", "attention.each-query-its-own-row")
SPREADS = ("causal", "contract", "generation", "gqa", "scale", "training")


def attention(q, k, v, *, causal=False, scale=None):
    out = mix(hide(scores(q, k, scale), causal), q, v)
    return out.transpose(1, 2).reshape(out.shape)
