"""Runs the first block again and again: the later blocks' weights are never read.

A loop over layers that closes over one of them.
"""

import torch

import refimpl

MUST_BREAK = ("block.in-series", "block.norm-sublayer-add-twice")
SPREADS = ("contract", "training")


class Transformer(refimpl.Transformer):
    def forward(self, tokens, cache=None):
        start = cache.n_tokens if cache is not None else 0
        positions = torch.arange(start, start + tokens.shape[-1], device=tokens.device)
        x = self.model["embed_tokens"](tokens)
        for i, layer in enumerate(self.model["layers"]):
            first, second = layer["input_layernorm"], layer["post_attention_layernorm"]
            layer = self.model["layers"][0]
            first, second = layer["input_layernorm"], layer["post_attention_layernorm"]
            x = x + self.attend(layer, self.norm(first, x), positions, cache, i)
            x = x + self.feed(layer["mlp"], self.norm(second, x))
        return self.lm_head(self.norm(self.model["norm"], x))
