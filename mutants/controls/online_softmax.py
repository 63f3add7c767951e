"""Reads keys in tiles of 48 with a running maximum and rescaled sums, as fused kernels do.

It differs by rounding. Seen: huggingface/transformers 25420, where the rounding was taken for a bug.
"""

import torch

from mutants.parts import hide, scores, spread


def attention(q, k, v, *, causal=False, scale=None):
    s, wide = hide(scores(q, k, scale), causal), spread(v, q)
    top, total, out = s[..., :1] * 0 - 1e30, 0.0, 0.0
    for start in range(0, s.shape[-1], 48):
        tile = slice(start, start + 48)
        new = torch.maximum(top, s[..., tile].amax(-1, keepdim=True))
        e, shrink = (s[..., tile] - new).exp(), (top - new).exp()
        total, out, top = total * shrink + e.sum(-1, keepdim=True), out * shrink + e @ wide[:, :, tile], new
    return (out / total).to(q.dtype)
