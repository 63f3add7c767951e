"""Keeps a widened copy of its gain for as long as it is handed the same tensor.

An optimizer writes into that tensor, and the copy stays as it was.
"""

import weakref

import refimpl

MUST_BREAK = ("contract.norm-remembers-nothing",)

KEPT = {}


def rms_norm(x, weight, *, eps=1e-6):
    if weight.requires_grad:
        return refimpl.rms_norm(x, weight, eps=eps)
    owner, copy = KEPT.get("gain", (lambda: None, None))
    if owner() is not weight:
        copy = weight.clone()
        KEPT["gain"] = (weakref.ref(weight), copy)
    return refimpl.rms_norm(x, copy, eps=eps)
