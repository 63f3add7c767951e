"""Gives the head a bias, one number a word more.

Where: GPT-J's lm_head. Loaded from a checkpoint without one it is zero, and only the count shows it.
"""

import torch
from torch import nn

import refimpl

MUST_BREAK = ("lm-head.table-has-a-row-a-token", "lm-head.tying-saves-one-table")
SPREADS = ("context", "cost", "rope", "training")


class Transformer(refimpl.Transformer):
    def __init__(self, config, *, device, dtype):
        super().__init__(config, device=device, dtype=dtype)
        self.lm_head.bias = nn.Parameter(torch.zeros(config.n_vocab, device=device, dtype=dtype))

    def load_state_dict(self, weights):
        return super().load_state_dict(weights, strict=False)
