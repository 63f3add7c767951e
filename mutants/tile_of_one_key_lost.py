"""Without a mask, loses the newest key where it alone is left for the last tile of 64: at 65, 129, 257 keys.

Lengths that fill their last tile by two keys or more are right.
"""

import refimpl

MUST_BREAK = ("attention.every-key-counts",)


def attention(q, k, v, *, causal=False, scale=None):
    n_k = k.shape[-2]
    keep = n_k - 1 if not causal and n_k > 64 and n_k % 64 == 1 else n_k
    return refimpl.attention(q, k[:, :, :keep], v[:, :, :keep], causal=causal, scale=scale)
