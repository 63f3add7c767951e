"""Hides a query's own key: the comparison is < instead of <=. The first row has no key at all.

Seen: flashinfer-ai/flashinfer PR 348 (the argument over > and >=).
"""

import torch

from mutants.parts import mix, scores

MUST_BREAK = ("causal.mask-matrix", "causal.never-sees-the-next", "causal.first-token-sees-itself")
SPREADS = ("attention", "contract", "generation", "gqa", "heads", "training")


def attention(q, k, v, *, causal=False, scale=None):
    s = scores(q, k, scale)
    n_q, n_k = s.shape[-2:]
    hidden = torch.ones(n_q, n_k, dtype=torch.bool, device=s.device).triu(n_k - n_q)
    return mix(s.masked_fill(hidden, -torch.inf) if causal else s, q, v)
