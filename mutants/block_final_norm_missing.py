"""Leaves the final norm out: the logits grow with the stream.

A post-norm stack needs none, and code that was turned to pre-norm may forget it.
"""

import torch

import refimpl

MUST_BREAK = ("block.stream-is-not-normalised", "block.identity-without-corrections")
SPREADS = ("contract", "lm-head", "training")


class Transformer(refimpl.Transformer):
    def forward(self, tokens, cache=None):
        start = cache.n_tokens if cache is not None else 0
        positions = torch.arange(start, start + tokens.shape[-1], device=tokens.device)
        x = self.model["embed_tokens"](tokens)
        for i, layer in enumerate(self.model["layers"]):
            first, second = layer["input_layernorm"], layer["post_attention_layernorm"]
            x = x + self.attend(layer, self.norm(first, x), positions, cache, i)
            x = x + self.feed(layer["mlp"], self.norm(second, x))
        return self.lm_head(x)
