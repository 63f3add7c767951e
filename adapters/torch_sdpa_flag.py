"""torch.nn.functional.scaled_dot_product_attention with its is_causal flag as it is.

The flag's mask is PyTorch's, and aligned at the first key: query i sees key j iff j <= i, so that one query
over a cache sees one key. float64 is float64 inside; 16-bit inputs accumulate in float32.
"""

import torch.nn.functional as F

from adapters.known import START_ALIGNED, breaks

REASON = "is_causal is aligned at the first key, as documented (pytorch #108108)"
KNOWN_BREAKS = breaks("convention", REASON, *START_ALIGNED)


def attention(q, k, v, *, causal=False, scale=None):
    return F.scaled_dot_product_attention(q, k, v, is_causal=causal, scale=scale, enable_gqa=True)
