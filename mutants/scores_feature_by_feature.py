"""Lays out the product of every query and key for each feature before it sums: n^2 d_k numbers a head.

The answers are right; the memory is d_k times the grid of scores.
"""

from mutants.parts import hide, mix, spread, widen

MUST_BREAK = ("cost.keeps-at-most-the-grid",)


def attention(q, k, v, *, causal=False, scale=None):
    scale = q.shape[-1] ** -0.5 if scale is None else scale
    products = widen(q)[..., :, None, :] * spread(k, q)[..., None, :, :]  # (batch, n_heads, n_q, n_k, d_k)
    return mix(hide(products.sum(-1) * scale, causal), q, v)
