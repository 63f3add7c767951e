"""Splits more than 64 keys in four parts of equal length and forgets the remainder: the newest keys.

Seen: tile-ai/tilelang PR 2010.
"""

from mutants.parts import hide, mix, scores

MUST_BREAK = ("attention.every-key-counts", "causal.never-sees-the-next")
SPREADS = ("generation",)


def attention(q, k, v, *, causal=False, scale=None):
    n = k.shape[-2]
    keep = n // 4 * 4 if n > 64 else n
    return mix(hide(scores(q, k, scale), causal)[..., :keep], q, v[:, :, :keep])
