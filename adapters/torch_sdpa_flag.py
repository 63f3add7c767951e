"""torch.nn.functional.scaled_dot_product_attention with its is_causal flag as it is.

The flag's mask is PyTorch's, and aligned at the first key: query i sees key j iff j <= i, so that one query
over a cache sees one key. float64 is float64 inside; 16-bit inputs accumulate in float32.
"""

import torch.nn.functional as F

START_ALIGNED = ( 
    "causal.aligned-at-the-end", "causal.newest-sees-every-key", "causal.holds-in-16-bit", "causal.never-sees-the-next",
    "causal.row-is-attention-over-its-prefix", "causal.zero-however-low-the-scores",
    "generation.cached-equals-full", "generation.greedy-answer-is-one-token-a-trip",
    "generation.no-cache-is-an-empty-cache", 
)  # fmt: skip
KNOWN_BREAKS = [
    {
        "claim": claim,
        "kind": "convention",
        "reason": "is_causal is aligned at the first key, as documented (pytorch #108108)",
    }
    for claim in START_ALIGNED
]


def attention(q, k, v, *, causal=False, scale=None):
    return F.scaled_dot_product_attention(q, k, v, is_causal=causal, scale=scale, enable_gqa=True)
