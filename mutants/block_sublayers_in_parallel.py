"""Feeds both sublayers from the same stream and adds both corrections at once.

Falcon, Phi-2 and Pythia are built so; for Llama's weights it is wrong.
"""

import torch

import refimpl

MUST_BREAK = ("block.norm-sublayer-add-twice",)
SPREADS = ("heads",)


class Transformer(refimpl.Transformer):
    def forward(self, tokens, cache=None):
        start = cache.n_tokens if cache is not None else 0
        positions = torch.arange(start, start + tokens.shape[-1], device=tokens.device)
        x = self.model["embed_tokens"](tokens)
        for i, layer in enumerate(self.model["layers"]):
            first, second = layer["input_layernorm"], layer["post_attention_layernorm"]
            x, seen = x + self.attend(layer, self.norm(first, x), positions, cache, i), x
            x = x + self.feed(layer["mlp"], self.norm(second, seen))
        return self.lm_head(self.norm(self.model["norm"], x))
