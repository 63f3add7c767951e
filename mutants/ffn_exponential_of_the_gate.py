"""Writes silu as g e^g / (1 + e^g), which is NaN for a gate past 88.

A sigmoid written that way overflows above, where 1 / (1 + e^-g) does not.
"""

MUST_BREAK = ("ffn.far-gates",)


def feed_forward(x, w_gate, w_up, w_down):
    gate = x @ w_gate
    return (gate * gate.exp() / (1 + gate.exp()) * (x @ w_up)) @ w_down
