"""Reads head 0 for every head when an input is a transposed view.

Packed inputs are right. Seen: BobMcDear/attorch 14.
"""

from mutants.parts import hide, mix, scores

MUST_BREAK = ("contract.attention-reads-by-strides",)
SPREADS = ("causal", "generation", "heads", "training")


def attention(q, k, v, *, causal=False, scale=None):
    q, k, v = (x if x.is_contiguous() else x[:, :1].expand_as(x) for x in (q, k, v))
    return mix(hide(scores(q, k, scale), causal), q, v)
