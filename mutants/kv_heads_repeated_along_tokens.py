"""Repeats keys and values along the token axis and reads the result as heads.

Without groups it is right. Seen: PrimeIntellect-ai/prime-rl PR 2681; ByteDance-Seed/VeOmni PR 162.
"""

from mutants.parts import hide, mix, scores

MUST_BREAK = ("gqa.query-head-reads-its-group", "gqa.equals-shared-full-heads")
SPREADS = ("attention", "causal", "contract", "generation", "heads", "scale", "training")


def widened(x, group):
    n_batch, n_kv_heads, n, d = x.shape
    return x.repeat_interleave(group, dim=2).reshape(n_batch, n_kv_heads * group, n, d)


def attention(q, k, v, *, causal=False, scale=None):
    group = q.shape[1] // k.shape[1]
    return mix(hide(scores(q, widened(k, group), scale), causal), q, widened(v, group))
