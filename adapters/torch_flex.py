"""torch.nn.attention.flex_attention, run eagerly (no torch.compile).

The mask is a mask_mod of this adapter's. float64 is float64 inside; 16-bit scores are float32. On the CPU it
has no backward pass, so that inputs which want a gradient are declined there.
"""

from torch.nn.attention import flex_attention as flex


def attention(q, k, v, *, causal=False, scale=None):
    if q.device.type == "cpu" and any(x.requires_grad for x in (q, k, v)):
        raise NotImplementedError("not offered: flex_attention has no backward pass on the CPU")
    n_q, n_k = q.shape[-2], k.shape[-2]
    mask = None
    if causal:
        mask = flex.create_block_mask(
            lambda b, h, i, j: j <= i + n_k - n_q, None, None, n_q, n_k, device=q.device
        )
    return flex.flex_attention(q, k, v, block_mask=mask, scale=scale, enable_gqa=True)
