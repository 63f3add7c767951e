"""Tiles the key/value heads (0, 1, 0, 1) where each should repeat (0, 0, 1, 1).

One head for all, or one for each, is right. Seen: onnx/onnx PR 7274; ekzhang/jax-js PR 180;
nntile/nntile PR 347.
"""

from mutants.parts import hide, mix, scores

MUST_BREAK = (
    "gqa.query-head-reads-its-group",
    "gqa.equals-shared-full-heads",
    "gqa.model-equals-repeated-projections",
)
SPREADS = ("attention", "causal", "contract", "heads", "scale")


def attention(q, k, v, *, causal=False, scale=None):
    group = q.shape[1] // k.shape[1]
    return mix(hide(scores(q, k.repeat(1, group, 1, 1), scale), causal), q, v.repeat(1, group, 1, 1))
