"""Adds a bias that falls with distance, counted from the first key.

Shapes and row sums are right. Seen: TransformerLensOrg/TransformerLens 776, PR 777 (ALiBi's rows).
"""

import torch

from mutants.parts import hide, mix, scores

MUST_BREAK = ("attention.order-blind", "heads.width-bounds-rank")
SPREADS = ("causal", "contract", "generation", "gqa", "scale")


def attention(q, k, v, *, causal=False, scale=None):
    s = scores(q, k, scale)
    i, j = (torch.arange(n, device=s.device).to(s.dtype) for n in s.shape[-2:])
    return mix(hide(s - 0.1 * (i[:, None] - j).abs(), causal), q, v)
