"""Pads the heads to a power of two of at least 16 and throws the surplus away: n_heads sets the FLOPs."""

import torch.nn.functional as F

import refimpl

MUST_BREAK = ("cost.score-flops-ignore-heads",)
SPREADS = ("heads",)


def attention(q, k, v, *, causal=False, scale=None):
    n_heads, group = q.shape[1], q.shape[1] // k.shape[1]
    k, v = k.repeat_interleave(group, 1), v.repeat_interleave(group, 1)
    surplus = max(16, 1 << (n_heads - 1).bit_length()) - n_heads
    q, k, v = (F.pad(x, (0, 0, 0, 0, 0, surplus)) for x in (q, k, v))
    return refimpl.attention(q, k, v, causal=causal, scale=scale)[:, :n_heads]
