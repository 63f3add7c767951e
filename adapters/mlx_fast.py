"""MLX's fast functions, on the CPU, where they are MLX's plain fallbacks.

attention: mx.fast.scaled_dot_product_attention; its "causal" mask is MLX's, aligned at the last key. rope:
mx.fast.rope with its own tables, half-split pairs, each token as a batch row with an offset of its own.
rms_norm: mx.fast.rms_norm. feed_forward: silu between products, composed here. Gradients are MLX's (mx.vjp).
Softmax, norm and tables are float32 inside, whatever the dtype, so float64 is not declared.
"""

import mlx.core as mx
import mlx.nn as nn
import torch

DTYPES = ("float32", "bfloat16", "float16")
DEVICES = ("cpu",)

mx.set_default_device(mx.cpu)


class Through(torch.autograd.Function):
    """A function of MLX arrays as one of torch tensors, with its gradient."""

    @staticmethod
    def forward(ctx, function, *tensors):
        ctx.function = function
        ctx.save_for_backward(*tensors)
        return torch.from_dlpack(function(*map(mx.array, tensors)))

    @staticmethod
    def backward(ctx, grad):
        arrays = [mx.array(x) for x in ctx.saved_tensors]
        _, grads = mx.vjp(ctx.function, arrays, [mx.array(grad)])
        return None, *map(torch.from_dlpack, grads)


def attention(q, k, v, *, causal=False, scale=None):
    scale = q.shape[-1] ** -0.5 if scale is None else scale

    def function(q, k, v):
        return mx.fast.scaled_dot_product_attention(q, k, v, scale=scale, mask="causal" if causal else None)

    return Through.apply(function, q, k, v)


def rope(x, positions, *, base=10000.0):
    if positions.is_floating_point():
        raise NotImplementedError("not offered: mx.fast.rope's offsets are whole numbers")
    offsets = mx.array(positions.to(torch.int32))

    def function(x):
        rows = mx.moveaxis(x, 2, 0).reshape(x.shape[2], -1, 1, x.shape[3])  # (n, batch * n_heads, 1, d_head)
        rows = mx.fast.rope(rows, x.shape[3], traditional=False, base=base, scale=1.0, offset=offsets)
        return mx.moveaxis(rows.reshape(x.shape[2], *x.shape[:2], x.shape[3]), 0, 2)

    return Through.apply(function, x)


def rms_norm(x, weight, *, eps=1e-6):
    return Through.apply(lambda x, weight: mx.fast.rms_norm(x, weight, eps), x, weight)


def feed_forward(x, w_gate, w_up, w_down):
    return Through.apply(lambda x, g, u, d: (nn.silu(x @ g) * (x @ u)) @ d, x, w_gate, w_up, w_down)
