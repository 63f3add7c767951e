"""Computes the softmax forward but passes its gradient straight through backward.

Outputs are right; queries learn from saturated rows too.
"""

from mutants.parts import hide, scores, spread

MUST_BREAK = (
    "scale.jacobian-is-diag-minus-outer",
    "scale.jacobian-vanishes-at-a-winner",
    "scale.keeps-the-gradient",
    "scale.typical-gradient-vanishes-without",
)
SPREADS = ("attention", "causal", "contract", "cost", "heads", "training")


def attention(q, k, v, *, causal=False, scale=None):
    s = hide(scores(q, k, scale), causal)
    s = s.masked_fill(s.isinf(), 0.0)
    weights = hide(scores(q, k, scale), causal).detach().softmax(-1) + s - s.detach()
    return (weights @ spread(v, q)).to(q.dtype)
