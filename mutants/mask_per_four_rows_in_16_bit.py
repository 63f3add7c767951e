"""In 16-bit, moves the mask once every four rows: three rows of four see up to three future keys.

float32 is right. Seen: pytorch/pytorch 195910 (MPS).
"""

import torch

from mutants.parts import mix, scores

MUST_BREAK = ("causal.holds-in-16-bit",)


def attention(q, k, v, *, causal=False, scale=None):
    s = scores(q, k, scale)
    n_q, n_k = s.shape[-2:]
    i = torch.arange(n_q, device=s.device)
    i = i // 4 * 4 + 3 if q.dtype in (torch.float16, torch.bfloat16) else i
    hidden = torch.arange(n_k, device=s.device) > (i + n_k - n_q)[:, None]
    return mix(s.masked_fill(hidden, -torch.inf) if causal else s, q, v)
