"""Leaves on the tanh cap of another model family: large scores are flattened.

Where: InternLM/lmdeploy PR 2842 (Gemma 2); ROCm/rocm-libraries PR 12229. Scores near 1 change by 1e-4.
"""

import torch

from mutants.parts import hide, mix, scores

MUST_BREAK = ("scale.only-differences-matter", "scale.two-keys")
SPREADS = ("attention", "causal", "contract", "gqa", "heads")


def attention(q, k, v, *, causal=False, scale=None):
    return mix(hide(50 * torch.tanh(scores(q, k, scale) / 50), causal), q, v)
