"""Pads keys to a multiple of 32 and lets the padding take part with score 0, unless causal.

Lengths 32 and 64 are right, and so is every masked call. Seen: jax-ml/jax 27224;
pytorch/pytorch 159247, PR 169222.
"""

import torch

from mutants.parts import hide, mix, scores

MUST_BREAK = ("attention.every-key-counts", "attention.even-without-scores")
SPREADS = ("causal", "contract", "cost", "gqa", "scale")


def attention(q, k, v, *, causal=False, scale=None):
    s, extra = hide(scores(q, k, scale), causal), -k.shape[-2] % 32
    s = torch.nn.functional.pad(s, (0, extra), value=-torch.inf if causal else 0.0)
    return mix(s, q, torch.nn.functional.pad(v, (0, 0, 0, extra)))
