"""Runs the rows of a batch one after the other, so that each of them reads all weights anew.

The answers are right, and a batch buys nothing.
"""

import torch

import refimpl

MUST_BREAK = ("serving.batching-intensity", "serving.prefill-is-compute-bound")


class Transformer(refimpl.Transformer):
    def forward(self, tokens, cache=None):
        if cache is not None:
            return super().forward(tokens, cache)
        return torch.cat([super(Transformer, self).forward(row) for row in tokens.split(1)])
