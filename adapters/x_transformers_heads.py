"""x-transformers' Attend with its heads as they are: query head h reads key/value head h % n_kv_heads.

The causal mask is Attend's own, aligned at the end. Softmax is float32 inside, whatever the dtype.
"""

from x_transformers.attend import Attend

from adapters.x_transformers_attend import DTYPES, FLOAT16_SCORES

__all__ = ["DTYPES", "attention"]

CONVENTION = {"kind": "convention", "reason": "query head h reads key/value head h % n_kv_heads"}
KNOWN_BREAKS = [
    FLOAT16_SCORES,
] + [
    {"claim": claim, **CONVENTION}
    for claim in (
        "attention.even-without-scores", "attention.formula", "attention.soft-choice-has-gradient",
        "attention.soft-dictionary", "attention.weighted-average", "causal.first-token-sees-itself",
        "contract.attention-passes-gradients",
        "causal.past-keys-learn", "gqa.equals-shared-full-heads", "gqa.model-equals-repeated-projections",
        "gqa.query-head-reads-its-group", "heads.order-is-free", "scale.argument-multiplies-scores",
    )
]  # fmt: skip


def attention(q, k, v, *, causal=False, scale=None):
    return Attend(causal=causal, scale=scale)(q, k, v)[0]
