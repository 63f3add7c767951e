"""Repeats grouped keys once for each tensor it is handed, and misses that the tensor was written to since.

A cache that is updated in place is such a tensor.
"""

import weakref

import refimpl

MUST_BREAK = ("contract.attention-remembers-nothing",)

KEPT = {}


def attention(q, k, v, *, causal=False, scale=None):
    group = q.shape[1] // k.shape[1]
    if group == 1 or k.requires_grad:
        return refimpl.attention(q, k, v, causal=causal, scale=scale)
    owner, keys = KEPT.get("keys", (lambda: None, None))
    if owner() is not k:
        keys = k.repeat_interleave(group, dim=1)
        KEPT["keys"] = (weakref.ref(k), keys)
    return refimpl.attention(q, keys, v.repeat_interleave(group, dim=1), causal=causal, scale=scale)
