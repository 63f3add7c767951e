"""Lets each query see one key of the future: the diagonal is off by one.

A test that replaces a token far ahead passes. Seen: Dao-AILab/flash-attention 1133.
"""

import torch

from mutants.parts import mix, scores

MUST_BREAK = ("causal.mask-matrix", "causal.never-sees-the-next", "causal.probe")
SPREADS = ("attention", "contract", "generation", "gqa", "training")


def attention(q, k, v, *, causal=False, scale=None):
    s = scores(q, k, scale)
    n_q, n_k = s.shape[-2:]
    hidden = torch.ones(n_q, n_k, dtype=torch.bool, device=s.device).triu(2 + n_k - n_q)
    return mix(s.masked_fill(hidden, -torch.inf) if causal else s, q, v)
