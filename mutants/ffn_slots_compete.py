"""A softmax over slots on top of the gate: slots compete, as keys do in attention.

The output is still a blend of rows of W_down, but no longer a sum of single slots.
"""

import torch.nn.functional as F

MUST_BREAK = ("ffn.sum-over-slots", "ffn.formula")
SPREADS = ("contract", "training")


def feed_forward(x, w_gate, w_up, w_down):
    gate = x @ w_gate
    return (gate.softmax(dim=-1) * F.silu(gate) * (x @ w_up)) @ w_down
