"""PyTorch's own functions.

attention: torch.nn.functional.scaled_dot_product_attention with grouped heads, on the kernel that PyTorch
picks. Its is_causal flag is aligned at the first key, so for n_q != n_k the end-aligned mask is this
adapter's. rms_norm: torch.nn.functional.rms_norm. feed_forward: torch.nn.functional.silu between two
torch.nn.functional.linear, composed here. float64 is float64 inside; 16-bit attention accumulates in float32.
"""

import torch
import torch.nn.functional as F


def attention(q, k, v, *, causal=False, scale=None):
    n_q, n_k = q.shape[-2], k.shape[-2]
    mask = None
    if causal and n_q != n_k:
        mask = torch.ones(n_q, n_k, dtype=torch.bool, device=q.device).tril(n_k - n_q)
    return F.scaled_dot_product_attention(
        q, k, v, attn_mask=mask, is_causal=causal and mask is None, scale=scale, enable_gqa=True
    )


def rms_norm(x, weight, *, eps=1e-6):
    return F.rms_norm(x, weight.shape, weight, eps)


def feed_forward(x, w_gate, w_up, w_down):
    return F.linear(F.silu(F.linear(x, w_gate.mT)) * F.linear(x, w_up.mT), w_down.mT)
