"""Multiplies the weights by the mask after the softmax, so that rows sum to less than 1.

Hidden weights are exactly 0. Seen: huggingface/pytorch-image-models PR 2236.
"""

from mutants.parts import scores, spread
from refimpl.attention import hidden

MUST_BREAK = ("attention.weighted-average", "causal.row-is-attention-over-its-prefix")
SPREADS = ("contract", "generation", "gqa", "training")


def attention(q, k, v, *, causal=False, scale=None):
    w = scores(q, k, scale).softmax(-1)
    if causal:
        w = w.masked_fill(hidden(*w.shape[-2:], w.device), 0.0)
    return (w @ spread(v, q)).to(q.dtype)
