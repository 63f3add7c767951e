"""Takes one softmax over the keys of all heads together.

One head is right. Seen: facebookresearch/detr 247.
"""

from mutants.parts import hide, scores, spread

MUST_BREAK = ("attention.weighted-average", "heads.never-interact")
SPREADS = ("causal", "contract", "gqa", "scale")


def attention(q, k, v, *, causal=False, scale=None):
    s = hide(scores(q, k, scale), causal).transpose(1, 2)  # (batch, n_q, n_heads, n_k)
    w = s.flatten(-2).softmax(-1).unflatten(-1, s.shape[-2:]).transpose(1, 2)
    return (w @ spread(v, q)).to(q.dtype)
