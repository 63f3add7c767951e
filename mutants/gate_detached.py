"""Cuts the gradient through the gate: the input hears from the up branch alone.

Outputs are right; one of the two messages that add up at the input is lost.
"""

import torch.nn.functional as F

MUST_BREAK = (
    "training.gradients-add-where-a-tensor-is-read-twice",
    "training.every-weight-gets-its-gradient",
)
SPREADS = ("contract",)


def feed_forward(x, w_gate, w_up, w_down):
    gate = F.silu(x.detach() @ w_gate)
    return (gate * (x @ w_up)) @ w_down
