"""Reads every input as if it were contiguous from its first number on.

Where: ml-explore/mlx PR 1340; ROCm/apex PR 334; pytorch/pytorch 78043. Fresh tensors are right,
views are not.
"""

import torch

import refimpl

MUST_BREAK = (
    "contract.attention-reads-by-strides",
    "contract.rope-reads-by-strides",
    "contract.norm-reads-by-strides",
    "contract.ffn-reads-by-strides",
)
SPREADS = ("causal", "generation", "gqa", "heads", "training")


def packed(x):
    """The shape filled with the memory that follows, starting over where the buffer ends."""
    length = x.untyped_storage().nbytes() // x.itemsize
    places = (x.storage_offset() + torch.arange(x.numel(), device=x.device)) % length
    return torch.as_strided(x, (length,), (1,), 0)[places].reshape(x.shape)


def careless(f):
    return lambda *inputs, **options: f(*map(packed, inputs), **options)


attention, rope = careless(refimpl.attention), careless(refimpl.rope)
rms_norm, feed_forward = careless(refimpl.rms_norm), careless(refimpl.feed_forward)
