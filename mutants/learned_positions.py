"""Keeps a table of learned positions beside RoPE, as GPT-2 has one instead of it.

Of zeros it changes no answer; the count shows it, and it fixes a maximum length.
"""

import torch
from torch import nn

import refimpl

MUST_BREAK = (
    "cost.whole-model-parameters",
    "cost.model-as-built",
    "cost.llama-2-7b-parameters",
    "serving.step-reads-weights-once",
)
SPREADS = ("context", "contract", "lm-head", "rope", "training")


class Transformer(refimpl.Transformer):
    def __init__(self, config, *, device, dtype):
        super().__init__(config, device=device, dtype=dtype)
        self.positions = nn.Parameter(torch.zeros(8192, config.d_model, device=device, dtype=dtype))

    def load_state_dict(self, weights):
        return super().load_state_dict({**weights, "positions": torch.zeros_like(self.positions)})

    def forward(self, tokens, cache=None):
        return super().forward(tokens, cache) + 0 * self.positions.sum()
