"""Feeds each position the guess of the one before, beside its token: scheduled sampling left on.

Where: Bengio et al. 2015 train so on purpose; a plain decoder's positions know no guesses.
"""

import torch.nn.functional as F

import refimpl

MUST_BREAK = ("training.guesses-do-not-interact",)
SPREADS = ("attention", "block", "contract", "cost", "generation", "heads", "lm-head")


class Transformer(refimpl.Transformer):
    def forward(self, tokens, cache=None):
        if cache is not None:
            return super().forward(tokens, cache)
        guesses = F.pad(super().forward(tokens).argmax(-1), (1, 0))[:, :-1]
        table = self.model["embed_tokens"]
        handle = table.register_forward_hook(lambda module, given, rows: rows + 0.1 * module.weight[guesses])
        try:
            return super().forward(tokens)
        finally:
            handle.remove()
