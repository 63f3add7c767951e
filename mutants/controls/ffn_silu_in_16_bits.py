"""Evaluates silu as g / (1 + e^-g) in the input's own type, without widening.

Reported in keras-team/keras-hub PR 1540 and tenstorrent/tt-metal PR 55714 as cancellation; the difference is
within the rounding of the type.
"""


def feed_forward(x, w_gate, w_up, w_down):
    gate = x @ w_gate
    return (gate / (1 + (-gate).exp()) * (x @ w_up)) @ w_down
