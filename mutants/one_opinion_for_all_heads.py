"""Averages the scores over heads and gives all of them the same weights.

Shapes, row sums and convexity are right.
"""

from mutants.parts import hide, scores, spread

MUST_BREAK = ("heads.own-opinions", "heads.never-interact")
SPREADS = ("attention", "causal", "contract", "gqa", "scale")


def attention(q, k, v, *, causal=False, scale=None):
    w = hide(scores(q, k, scale).mean(1), causal).softmax(-1)  # (batch, n_q, n_k)
    values = spread(v, q).transpose(1, 2).flatten(-2)  # (batch, n_k, n_heads * d_v)
    return (w @ values).unflatten(-1, (q.shape[1], -1)).transpose(1, 2).to(q.dtype)
