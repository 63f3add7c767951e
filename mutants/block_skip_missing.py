"""Replaces the stream by the sublayer's output: no skip.

Such a stack still runs, and trains when it is shallow.
"""

import torch

import refimpl

MUST_BREAK = ("block.identity-without-corrections", "block.norm-sublayer-add-twice", "block.in-series")
SPREADS = ("attention", "heads")


class Transformer(refimpl.Transformer):
    def forward(self, tokens, cache=None):
        start = cache.n_tokens if cache is not None else 0
        positions = torch.arange(start, start + tokens.shape[-1], device=tokens.device)
        x = self.model["embed_tokens"](tokens)
        for i, layer in enumerate(self.model["layers"]):
            first, second = layer["input_layernorm"], layer["post_attention_layernorm"]
            x = self.attend(layer, self.norm(first, x), positions, cache, i)
            x = self.feed(layer["mlp"], self.norm(second, x))
        return self.lm_head(self.norm(self.model["norm"], x))
