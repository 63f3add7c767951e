"""Runs all blocks on the embeddings at once and adds what they say.

Fast, and no block reads another's output: their order means nothing.
"""

import torch

import refimpl

MUST_BREAK = ("training.what-runs-in-parallel",)
SPREADS = ("block",)


class Transformer(refimpl.Transformer):
    def forward(self, tokens, cache=None):
        start = cache.n_tokens if cache is not None else 0
        positions = torch.arange(start, start + tokens.shape[-1], device=tokens.device)
        rows = self.model["embed_tokens"](tokens)
        out = rows
        for i, layer in enumerate(self.model["layers"]):
            x = rows + self.attend(layer, self.norm(layer["input_layernorm"], rows), positions, cache, i)
            out = out + x - rows + self.feed(layer["mlp"], self.norm(layer["post_attention_layernorm"], x))
        return self.lm_head(self.norm(self.model["norm"], out))
