"""Keeps an extra slot of score 0 in the softmax's denominator, as attention sinks do.

Weights sum to less than 1; beside one large score it hides. Seen: ml-explore/mlx 3452.
"""

import torch

from mutants.parts import hide, scores, spread

MUST_BREAK = (
    "attention.weighted-average",
    "attention.even-without-scores",
    "attention.computes-xor",
    "attention.spread-counts-tokens",
)
SPREADS = ("causal", "contract", "gqa", "scale")


def attention(q, k, v, *, causal=False, scale=None):
    s = torch.nn.functional.pad(hide(scores(q, k, scale), causal), (1, 0))
    return (s.softmax(-1)[..., 1:] @ spread(v, q)).to(q.dtype)
