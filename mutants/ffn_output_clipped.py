"""Clips its output to +-1, as a saturating cast would.

The output is then not linear in W_down, and no edit of W_down can write a larger number.
"""

import torch.nn.functional as F

MUST_BREAK = ("ffn.fact-is-a-rank-one-edit", "ffn.gate-and-content-roles")
SPREADS = ("contract", "training")


def feed_forward(x, w_gate, w_up, w_down):
    return ((F.silu(x @ w_gate) * (x @ w_up)) @ w_down).clamp(-1, 1)
