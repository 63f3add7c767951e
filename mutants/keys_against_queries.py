"""Scores keys against queries where their numbers agree: the weights come out transposed.

Seen: karpathy/llm.c PR 531 (suspected there).
"""

from mutants.parts import hide, mix, scores

MUST_BREAK = ("attention.each-query-its-own-row", "attention.soft-dictionary")
SPREADS = ("causal", "contract", "generation", "gqa")


def attention(q, k, v, *, causal=False, scale=None):
    s = scores(q, k, scale)
    return mix(hide(s.mT if s.shape[-1] == s.shape[-2] else s, causal), q, v)
