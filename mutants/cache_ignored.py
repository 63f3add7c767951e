"""Accepts a cache, and neither fills nor reads it: a step sees its own tokens only.

As happens where `if cache:` asks whether a fresh cache is empty, which it is.
"""

import refimpl

MUST_BREAK = ("generation.cached-equals-full", "generation.greedy-answer-is-one-token-a-trip")
SPREADS = ("contract", "serving")


class Transformer(refimpl.Transformer):
    def forward(self, tokens, cache=None):
        return super().forward(tokens)
