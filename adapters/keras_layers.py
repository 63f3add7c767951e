"""Keras layers on the PyTorch backend: GroupQueryAttention and RMSNormalization.

attention: keras.layers.GroupQueryAttention with identity projections, given an end-aligned attention_mask
made here (its use_causal_mask is aligned at the first key, as keras_ops_flag is). The layer repeats the
key/value heads itself; it has no scale, so a given one is multiplied into the queries here, and no values of
another width than keys. rms_norm: keras.layers.RMSNormalization. Layers compute in the dtype they are built
with; float64 becomes float32 in places and is not declared.
"""

from functools import lru_cache

import torch

from adapters.keras_ops import DEVICES, DTYPES, here, keras  # noqa: F401


def merge(x):
    return x.transpose(1, 2).flatten(-2)  # (batch, n, n_heads * d)


@lru_cache  # building a layer takes longer than calling it
def grouped(d, n_heads, n_kv_heads, dtype):
    """The layer, with projections that leave heads as they are."""
    layer = keras.layers.GroupQueryAttention(
        d, n_heads, n_kv_heads, use_bias=False, kernel_initializer="zeros", dtype=dtype
    )
    layer.build((None, None, n_heads * d), (None, None, n_kv_heads * d))
    for weight in layer.weights:
        weight.assign(torch.eye(max(weight.shape)).reshape(weight.shape))
    layer.trainable = False
    return layer


def attention(q, k, v, *, causal=False, scale=None):
    here(q)
    n_heads, n_q, d, (n_kv_heads, n_k) = *q.shape[1:], k.shape[1:3]
    if v.shape[-1] != d:
        raise NotImplementedError("not offered: the layer's values are as wide as its keys")
    if scale is not None:
        q = q * (scale * d**0.5)
    mask = torch.ones(1, n_q, n_k, dtype=torch.bool).tril(n_k - n_q) if causal else None
    out = grouped(d, n_heads, n_kv_heads, name(q))(merge(q), merge(v), merge(k), attention_mask=mask)
    return out.unflatten(-1, (n_heads, d)).transpose(1, 2)


@lru_cache
def normalisation(d, eps, dtype):
    layer = keras.layers.RMSNormalization(epsilon=eps, dtype=dtype)
    layer.build((None, d))
    return layer


def rms_norm(x, weight, *, eps=1e-6):
    return normalisation(len(weight), eps, name(x)).stateless_call([weight], [], x)[0]


def name(x):
    return str(x.dtype).removeprefix("torch.")
