"""Keras on its PyTorch backend: keras.ops, with an end-aligned mask.

attention: keras.ops.dot_product_attention, which repeats the key/value heads and calls PyTorch's kernel. Its
is_causal flag is aligned at the first key (keras_ops_flag judges it), so the end-aligned boolean mask is this
adapter's; Keras turns it into finite numbers. rms_norm: keras.ops.rms_normalization. feed_forward: composed
here of keras.ops.silu and keras.ops.matmul. Keras computes in float32 at most, so float64 is not declared.
"""

import os

os.environ.setdefault("KERAS_BACKEND", "torch")
os.environ.setdefault("KERAS_TORCH_DEVICE", "cpu")

import keras
import torch

DTYPES = ("float32", "bfloat16", "float16")
DEVICES = ("cpu",)

if keras.backend.backend() != "torch":
    raise ImportError("this adapter judges Keras on KERAS_BACKEND=torch")


def attention(q, k, v, *, causal=False, scale=None):
    n_q, n_k = q.shape[-2], k.shape[-2]
    mask = torch.ones(1, 1, n_q, n_k, dtype=torch.bool).tril(n_k - n_q) if causal else None
    return run(q, k, v, mask=mask, scale=scale)


def run(q, k, v, **options):
    """Keras' function for tensors with heads before tokens."""
    here(q)
    q, k, v = (x.transpose(1, 2) for x in (q, k, v))  # (batch, n, heads, d)
    return keras.ops.dot_product_attention(q, k, v, **options).transpose(1, 2)


def here(x):
    if x.is_meta:
        raise NotImplementedError("not offered: Keras moves tensors from meta to the CPU")


def rms_norm(x, weight, *, eps=1e-6):
    return keras.ops.rms_normalization(x, scale=weight, epsilon=eps)


def feed_forward(x, w_gate, w_up, w_down):
    here(x)
    matmul = keras.ops.matmul
    return matmul(keras.ops.silu(matmul(x, w_gate)) * matmul(x, w_up), w_down)
