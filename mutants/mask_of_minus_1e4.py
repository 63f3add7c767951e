"""Fills hidden scores with -1e4, which visible scores below it lose against.

Inputs of unit variance never show it. Seen: karpathy/minGPT 75; huggingface/transformers 17121;
TransformerLensOrg/TransformerLens 318, 385.
"""

from mutants.parts import hide, mix, scores

MUST_BREAK = ("causal.zero-however-low-the-scores",)


def attention(q, k, v, *, causal=False, scale=None):
    return mix(hide(scores(q, k, scale), causal, -1e4), q, v)
