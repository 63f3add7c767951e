"""Flax NNX: nnx.dot_product_attention by its own einsums, and nnx.RMSNorm.

attention: nnx.dot_product_attention with a module to keep the weights in, which is when it computes them
itself in place of calling jax.nn. It groups the heads itself. Its is_causal flag is aligned at the first key,
so the end-aligned mask is this adapter's; it has no scale, so a given one is multiplied into the queries
here. rms_norm: nnx.RMSNorm. feed_forward: composed here of three nnx.Linear and nnx.silu. Attention is
computed in the tensors' own dtype, the norm's statistics in float32 at least; jax_nn says how it is run.
"""

from functools import partial

import jax
from flax import nnx

from adapters.jax_nn import DEVICES, Through, end_aligned  # noqa: F401

jax.config.update("jax_enable_x64", True)


@partial(jax.jit, static_argnames="causal")
def heads_last(q, k, v, *, causal):
    mask = end_aligned(q.shape[1], k.shape[1]) if causal else None
    return nnx.dot_product_attention(q, k, v, mask=mask, module=nnx.Module())


def attention(q, k, v, *, causal=False, scale=None):
    q = q if scale is None else q * (scale * q.shape[-1] ** 0.5)
    q, k, v = (x.transpose(1, 2) for x in (q, k, v))  # (batch, n, heads, d)
    return Through.apply(partial(heads_last, causal=causal), q, k, v).transpose(1, 2)


@partial(jax.jit, static_argnames="eps")
def norm(x, weight, *, eps):
    return nnx.RMSNorm(len(weight), epsilon=eps, scale_init=lambda *_: weight, rngs=nnx.Rngs(0))(x)


def rms_norm(x, weight, *, eps=1e-6):
    return Through.apply(partial(norm, eps=eps), x, weight)


def linear(x, kernel):
    return nnx.Linear(*kernel.shape, use_bias=False, kernel_init=lambda *_: kernel, rngs=nnx.Rngs(0))(x)


@jax.jit
def swiglu(x, gate, up, down):
    return linear(nnx.silu(linear(x, gate)) * linear(x, up), down)


def feed_forward(x, w_gate, w_up, w_down):
    return Through.apply(swiglu, x, w_gate, w_up, w_down)
