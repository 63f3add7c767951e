"""Returns the value of the best key and no other.

Every test of convexity passes: weights are 0 or 1 and sum to 1. Queries and keys get no gradient.
"""

import torch

from mutants.parts import hide, scores, spread

MUST_BREAK = (
    "attention.weighted-average",
    "attention.soft-choice-has-gradient",
    "attention.even-without-scores",
)
SPREADS = ("causal", "contract", "gqa", "heads", "scale", "training")


def attention(q, k, v, *, causal=False, scale=None):
    s = hide(scores(q, k, scale), causal)
    w = torch.nn.functional.one_hot(s.argmax(-1), s.shape[-1]).to(s.dtype) + 0 * s.softmax(-1)
    return (w @ spread(v, q)).to(q.dtype)
