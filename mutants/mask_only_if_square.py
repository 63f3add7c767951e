"""Masks only where there are as many queries as keys.

Tokens of a chunk behind a warm cache see each other's future; prefill and single steps are right.
Seen: mlx-node/mlx-node PR 24; Mikyx-1/TinyLLM PR 18; lightseekorg/tokenspeed PR 178.
"""

from mutants.parts import hide, mix, scores

MUST_BREAK = ("causal.aligned-at-the-end", "causal.never-sees-the-next")
SPREADS = ("generation",)


def attention(q, k, v, *, causal=False, scale=None):
    return mix(hide(scores(q, k, scale), causal and q.shape[-2] == k.shape[-2]), q, v)
