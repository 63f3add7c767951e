"""Looks back 512 keys under the mask and forgets what is older.

Shorter prompts are right. Seen: huggingface/transformers 35924, 29623; vllm-project/vllm 3385.
"""

import torch

from mutants.parts import hide, mix, scores

MUST_BREAK = ("causal.newest-sees-every-key", "causal.never-sees-the-next")


def attention(q, k, v, *, causal=False, scale=None):
    s = hide(scores(q, k, scale), causal)
    old = torch.ones(s.shape[-2:], dtype=torch.bool, device=s.device).tril(s.shape[-1] - s.shape[-2] - 512)
    return mix(s.masked_fill(old, -torch.inf) if causal else s, q, v)
