"""Centres every slot over the tokens of the sequence, as batch statistics do.

A token's output then depends on the tokens beside it.
"""

import torch.nn.functional as F

MUST_BREAK = ("ffn.position-wise",)
SPREADS = ("attention", "causal", "contract", "training")


def feed_forward(x, w_gate, w_up, w_down):
    slots = F.silu(x @ w_gate) * (x @ w_up)
    return (slots - slots.mean(dim=-2, keepdim=True)) @ w_down
