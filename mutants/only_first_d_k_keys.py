"""Adds up the first d_k values and forgets the others.

Prompts no longer than a head is wide are right. Seen: timtoole02/Camelid PR 714.
"""

from mutants.parts import hide, scores, spread

MUST_BREAK = ("attention.every-key-counts", "attention.weighted-average")
SPREADS = ("causal", "cost", "heads", "scale")


def attention(q, k, v, *, causal=False, scale=None):
    w, n = hide(scores(q, k, scale), causal).softmax(-1), q.shape[-1]
    return (w[..., :n] @ spread(v, q)[:, :, :n]).to(q.dtype)
