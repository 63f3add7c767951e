"""Tells how W_down is stored by its shape, and reads a square one the wrong way round."""

import refimpl

MUST_BREAK = ("ffn.formula",)


def feed_forward(x, w_gate, w_up, w_down):
    stored_as_linear = w_down.shape[-1] == w_gate.shape[-1]
    return refimpl.feed_forward(x, w_gate, w_up, w_down.mT if stored_as_linear else w_down)
