"""Leaves the gate out: a plain SiLU network under SwiGLU's name.

Where: google-research/timesfm issue 493, where a unit test asserted that swiglu is silu.
"""

import torch.nn.functional as F

MUST_BREAK = ("ffn.gate-and-content-roles", "ffn.two-patterns-a-slot", "ffn.not-additive")
SPREADS = ("contract", "training")


def feed_forward(x, w_gate, w_up, w_down):
    return F.silu(x @ w_up) @ w_down
