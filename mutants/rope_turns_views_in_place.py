"""Turns a view where it lies, as projections leave queries and keys, and so writes to its caller's tensor.

Contiguous tensors are left alone, and those that carry a gradient.
"""

import refimpl

MUST_BREAK = ("contract.rope-writes-nothing",)


def rope(x, positions, *, base=10000.0):
    turned = refimpl.rope(x, positions, base=base)
    if x.is_contiguous() or x.requires_grad or not all(x.stride()):
        return turned
    return x.copy_(turned)
