"""A sigmoid on the gate (GLU), which is bounded by 1: the dimmer that SiLU is taken for.

Where: ooples/AiDotNet.Tensors PR 46, which has glu beside swiglu.
"""

import torch

MUST_BREAK = ("ffn.gate-is-no-dimmer", "ffn.far-gates")
SPREADS = ("contract", "training")


def feed_forward(x, w_gate, w_up, w_down):
    return (torch.sigmoid(x @ w_gate) * (x @ w_up)) @ w_down
