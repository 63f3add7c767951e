"""Divides each value by its length, as if values were compared and not passed on."""

from mutants.parts import hide, mix, scores, widen

MUST_BREAK = ("attention.linear-in-values", "attention.formula")
SPREADS = ("causal", "contract", "gqa", "scale")


def attention(q, k, v, *, causal=False, scale=None):
    v = v / widen(v).norm(dim=-1, keepdim=True).clamp(min=1e-6).to(v.dtype)
    return mix(hide(scores(q, k, scale), causal), q, v)
