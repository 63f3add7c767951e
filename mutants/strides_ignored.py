"""Walks through memory as if inputs were packed.

Tensors as they are drawn are packed. Seen: pytorch/pytorch 181133 (MPS), 112577; huggingface/candle PR 3703.
"""

import torch

from mutants.parts import hide, mix, scores

MUST_BREAK = ("contract.attention-reads-by-strides",)
SPREADS = ("causal", "generation", "gqa", "heads", "training")


def packed(x):
    room = x.untyped_storage().nbytes() // x.element_size() - x.storage_offset()
    if x.is_contiguous() or room < x.numel():
        return x
    return x.as_strided(x.shape, torch.empty(x.shape, device="meta").stride())


def attention(q, k, v, *, causal=False, scale=None):
    return mix(hide(scores(packed(q), packed(k), scale), causal), q, packed(v))
