"""Hands out logits without a gradient, as under torch.no_grad() or after .detach().

Right for serving; an implementation that only serves says GRADIENTS = False.
"""

import torch

import refimpl

MUST_BREAK = (
    "training.every-weight-gets-its-gradient",
    "training.message-comes-from-behind",
    "training.optimizer-keeps-two-per-weight",
    "generation.reads-all-earlier-tokens",
)
SPREADS = ("block", "contract")


class Transformer(refimpl.Transformer):
    def forward(self, tokens, cache=None):
        with torch.no_grad():
            return super().forward(tokens, cache)
