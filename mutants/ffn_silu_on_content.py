"""Puts the SiLU on the content branch: silu(x W_up) times x W_gate.

Where: ml-explore/mlx-lm PR 767; ooples/AiDotNet.Tensors PR 46. Equal weights in both hide it.
"""

import torch.nn.functional as F

MUST_BREAK = ("ffn.gate-and-content-roles", "ffn.formula")
SPREADS = ("contract", "training")


def feed_forward(x, w_gate, w_up, w_down):
    return ((x @ w_gate) * F.silu(x @ w_up)) @ w_down
