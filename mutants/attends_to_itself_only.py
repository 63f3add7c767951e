"""Under the mask each query sees its own key and nothing of the past.

The extreme of a window that is too short. Every test for leaks from the future passes.
"""

import torch

from mutants.parts import hide, mix, scores

MUST_BREAK = ("causal.mask-matrix", "causal.probe", "causal.fading-is-no-law")
SPREADS = ("attention", "contract", "gqa", "heads", "training")


def attention(q, k, v, *, causal=False, scale=None):
    s = hide(scores(q, k, scale), causal)
    past = torch.ones(s.shape[-2:], dtype=torch.bool, device=s.device).tril(s.shape[-1] - s.shape[-2] - 1)
    return mix(s.masked_fill(past, -torch.inf) if causal else s, q, v)
