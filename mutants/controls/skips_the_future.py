"""Computes causal scores in strips of 64 queries and leaves out the keys that a strip cannot see.

Correct: about half of the scores' FLOPs, and nothing of the full grid's size is ever made.
"""

import torch

import refimpl


def attention(q, k, v, *, causal=False, scale=None):
    if not causal:
        return refimpl.attention(q, k, v, scale=scale)
    n_q, n_k, strips = q.shape[-2], k.shape[-2], []
    size = max(64, n_q // 16)
    for start in range(0, n_q, size):
        stop = min(start + size, n_q)
        seen = stop + n_k - n_q
        strip = q[..., start:stop, :]
        strips.append(refimpl.attention(strip, k[..., :seen, :], v[..., :seen, :], causal=True, scale=scale))
    return torch.cat(strips, dim=-2)


def Transformer(config, *, device, dtype):
    return refimpl.Transformer(config, device=device, dtype=dtype, attention=attention)
