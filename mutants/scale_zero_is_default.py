"""Takes a scale of 0 for a scale that was not given.

Where: SKaiNET-developers/SKaiNET issue 860; in Python it reads `scale or default`.
"""

from mutants.parts import hide, mix, scores

MUST_BREAK = ("scale.argument-multiplies-scores",)


def attention(q, k, v, *, causal=False, scale=None):
    return mix(hide(scores(q, k, scale or q.shape[-1] ** -0.5), causal), q, v)
