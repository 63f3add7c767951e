"""JAX: jax.nn.dot_product_attention, and a feed-forward of jax.nn.silu.

attention: jax.nn.dot_product_attention (implementation "xla"), which groups the heads itself. Its is_causal
flag is aligned at the first key (jax_nn_flag judges it), so the end-aligned mask is this adapter's. It wants
values as wide as keys: narrower ones are padded here with zeros, wider ones declined. feed_forward: composed
here. Everything runs under jax.jit, with XLA's optimizations off, since each fresh shape is compiled anew.
Tensors are copied over by DLPack; gradients are those of jax.vjp, once. The softmax is float32 inside,
whatever the dtype, so float64 is not declared; float16 is not either, since it asks for a matrix product of
float16 with float32 sums that its CPU backend has not.
"""

from functools import partial

import jax
import jax.numpy as jnp
import torch
from torch.autograd.function import once_differentiable

DTYPES = ("float32", "bfloat16")
DEVICES = ("cpu",)
jax.config.update("jax_disable_most_optimizations", True)


class Through(torch.autograd.Function):
    """A function of JAX arrays as one of tensors, with its own vector-Jacobian product."""

    @staticmethod
    def forward(ctx, function, *tensors):
        if any(x.is_meta for x in tensors):
            raise NotImplementedError("not offered: JAX cannot read tensors on meta")
        arrays = [jax.dlpack.from_dlpack(x.detach().contiguous(), copy=True) for x in tensors]
        if any(ctx.needs_input_grad):
            out, ctx.vjp = jax.vjp(function, *arrays)
        else:
            out = function(*arrays)
        return torch.from_dlpack(out.block_until_ready())

    @staticmethod
    @once_differentiable
    def backward(ctx, grad):
        grads = ctx.vjp(jax.dlpack.from_dlpack(grad.contiguous(), copy=True))
        return None, *(torch.from_dlpack(g.block_until_ready()) for g in grads)


def end_aligned(n_q, n_k):
    return jnp.tril(jnp.ones((1, 1, n_q, n_k), bool), n_k - n_q)


@partial(jax.jit, static_argnames=("causal", "flag", "scale"))
def heads_last(q, k, v, *, causal=False, flag=False, scale=None):
    mask = end_aligned(q.shape[1], k.shape[1]) if causal else None
    return jax.nn.dot_product_attention(q, k, v, mask=mask, is_causal=flag, scale=scale)


def attention(q, k, v, **options):
    (d_k, d_v) = k.shape[-1], v.shape[-1]
    if d_v > d_k:
        raise NotImplementedError("not offered: JAX takes values as wide as the keys, not wider")
    v = torch.nn.functional.pad(v, (0, d_k - d_v))
    q, k, v = (x.transpose(1, 2) for x in (q, k, v))  # (batch, n, heads, d_k)
    return Through.apply(partial(heads_last, **options), q, k, v).transpose(1, 2)[..., :d_v]


@jax.jit
def swiglu(x, gate, up, down):
    return (jax.nn.silu(x @ gate) * (x @ up)) @ down


def feed_forward(x, w_gate, w_up, w_down):
    return Through.apply(swiglu, x, w_gate, w_up, w_down)
