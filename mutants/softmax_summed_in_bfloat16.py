"""Adds the exponentials up in bfloat16, where its input is that: the sum stalls at 256.

Other dtypes are right, and so are short rows. Seen: Dao-AILab/flash-attention 613;
huggingface/transformers 27341.
"""

import torch

from mutants.parts import hide, scores, spread

MUST_BREAK = ("attention.sums-in-16-bit",)


def attention(q, k, v, *, causal=False, scale=None):
    s = hide(scores(q, k, scale), causal).to(q.dtype)
    e = (s - s.amax(-1, keepdim=True)).exp()
    total = e.sum(-1, keepdim=True)
    if e.dtype == torch.bfloat16:
        total = e[..., :1] * 0
        for j in range(e.shape[-1]):
            total = total + e[..., j : j + 1]  # rounded at each step
    return e / total @ spread(v, q).to(q.dtype)
