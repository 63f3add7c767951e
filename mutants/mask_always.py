"""Masks the future whether or not it was asked to.

Seen in teaching code that builds the mask into its attention.
"""

import torch

from mutants.parts import mix, scores

MUST_BREAK = ("causal.open-sees-everything", "attention.order-blind")
SPREADS = ("contract", "gqa", "heads", "scale")


def attention(q, k, v, *, causal=False, scale=None):
    s = scores(q, k, scale)
    n_q, n_k = s.shape[-2:]
    hidden = torch.ones(n_q, n_k, dtype=torch.bool, device=s.device).triu(1 + max(0, n_k - n_q))
    return mix(s.masked_fill(hidden, -torch.inf), q, v)
