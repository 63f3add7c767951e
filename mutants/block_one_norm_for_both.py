"""Uses the first norm's gain before both sublayers.

The second gain is loaded and never read.
"""

import torch

import refimpl

MUST_BREAK = ("block.norm-sublayer-add-twice",)
SPREADS = ("contract", "training")


class Transformer(refimpl.Transformer):
    def forward(self, tokens, cache=None):
        start = cache.n_tokens if cache is not None else 0
        positions = torch.arange(start, start + tokens.shape[-1], device=tokens.device)
        x = self.model["embed_tokens"](tokens)
        for i, layer in enumerate(self.model["layers"]):
            first = layer["input_layernorm"]
            x = x + self.attend(layer, self.norm(first, x), positions, cache, i)
            x = x + self.feed(layer["mlp"], self.norm(first, x))
        return self.lm_head(self.norm(self.model["norm"], x))
