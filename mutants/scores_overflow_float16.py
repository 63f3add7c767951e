"""Forms q k^T in float16 and scales it afterwards.

Where: pytorch/pytorch issue 110505; huggingface/transformers PRs 17437, 18057. In float32 it is correct.
"""

from mutants.parts import hide, mix, widen

MUST_BREAK = ("scale.applies-before-float16-overflows",)


def attention(q, k, v, *, causal=False, scale=None):
    scale = q.shape[-1] ** -0.5 if scale is None else scale
    scores = q @ k.repeat_interleave(q.shape[1] // k.shape[1], dim=1).mT  # in q's dtype
    return mix(hide((scores * scale).to(widen(q).dtype), causal), q, v)
