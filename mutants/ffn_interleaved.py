"""Takes every second column for the gate from matrices that were concatenated.

Where: Dao-AILab/sonic-moe issue 45; tenstorrent/tt-metal PR 52818.
"""

import torch
import torch.nn.functional as F

MUST_BREAK = ("ffn.formula", "ffn.two-patterns-a-slot")
SPREADS = ("contract", "training")


def feed_forward(x, w_gate, w_up, w_down):
    both = x @ torch.cat((w_gate, w_up), dim=-1)
    return (F.silu(both[..., ::2]) * both[..., 1::2]) @ w_down
