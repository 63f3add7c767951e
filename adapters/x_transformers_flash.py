"""x-transformers' Attend with flash=True, told at the call whether it is causal.

Heads are put in its order and back, as in adapters.x_transformers_attend. Whether a call is causal is judged
as Attend takes it; float64 is float64 inside.
"""

from x_transformers.attend import Attend

from adapters.x_transformers_attend import by_remainder

DEFECT = {"kind": "defect", "reason": "Attend.forward hands causal= on to its plain path, not to flash_attn"}
KNOWN_BREAKS = [
    {"claim": claim, **DEFECT}
    for claim in (
        "attention.even-without-scores", "attention.fast-is-exact", "causal.newest-sees-every-key",
        "attention.formula", "attention.soft-choice-has-gradient", "attention.weighted-average",
        "causal.aligned-at-the-end", "causal.first-token-sees-itself", "causal.holds-in-16-bit",
        "causal.mask-brings-order", "causal.mask-matrix", "causal.never-sees-the-next", "causal.probe",
        "causal.row-is-attention-over-its-prefix", "causal.zero-however-low-the-scores",
        "contract.attention-passes-gradients",
        "generation.cached-equals-full", "generation.greedy-answer-is-one-token-a-trip",
        "generation.no-cache-is-an-empty-cache", "causal.past-keys-learn", "gqa.equals-shared-full-heads",
        "training.one-pass-is-n-passes",
    )
]  # fmt: skip


def attention(q, k, v, *, causal=False, scale=None):
    n_heads, n_kv_heads = q.shape[1], k.shape[1]
    out = Attend(flash=True, scale=scale)(by_remainder(q, n_kv_heads, 1), k, v, causal=causal)[0]
    return by_remainder(out, n_heads // n_kv_heads, 1)
