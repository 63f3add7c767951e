"""All sequences of a batch read the keys and values of the first.

A batch of one, or of equal rows, is right. Seen: BobMcDear/attorch 14.
"""

from mutants.parts import hide, mix, scores

MUST_BREAK = ("contract.attention-keeps-rows-apart",)
SPREADS = ("attention", "causal", "gqa", "scale")


def attention(q, k, v, *, causal=False, scale=None):
    k, v = k[:1].expand_as(k), v[:1].expand_as(v)
    return mix(hide(scores(q, k, scale), causal), q, v)
