"""Returns a view of memory laid out as (batch, n_q, n_heads, d_v), as fused kernels do."""

from mutants.parts import hide, mix, scores


def attention(q, k, v, *, causal=False, scale=None):
    return mix(hide(scores(q, k, scale), causal), q, v).transpose(1, 2).contiguous().transpose(1, 2)
