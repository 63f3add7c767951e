"""Pads every text that comes without a cache to a multiple of 16 tokens, as graphs of fixed shape do.

Behind a causal mask the padding changes no answer; a prompt of 17 tokens costs what 32 would.
"""

import torch

import refimpl

MUST_BREAK = ("cost.two-flops-a-weight", "serving.batching-intensity")
SPREADS = ("generation", "lm-head", "training")


class Transformer(refimpl.Transformer):
    def forward(self, tokens, cache=None):
        n = tokens.shape[1]
        if cache is not None or n % 16 == 0:
            return super().forward(tokens, cache)
        padding = torch.zeros(len(tokens), -n % 16, dtype=tokens.dtype, device=tokens.device)
        return super().forward(torch.cat((tokens, padding), dim=1))[:, :n]
