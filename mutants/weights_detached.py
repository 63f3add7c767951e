"""Detaches the weights: only the values get a gradient.

Where: seen in teaching code, from a weight matrix that was detached for plotting.
"""

from mutants.parts import hide, scores, spread

MUST_BREAK = ("scale.jacobian-is-diag-minus-outer", "scale.keeps-the-gradient")
SPREADS = ("attention", "causal", "contract", "training")


def attention(q, k, v, *, causal=False, scale=None):
    weights = hide(scores(q, k, scale), causal).softmax(-1).detach()
    return (weights @ spread(v, q)).to(q.dtype)
