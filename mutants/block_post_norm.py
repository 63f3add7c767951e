"""The norm on the stream, after the addition, as in the original transformer: post-norm.

A skip that branches off after the norm comes to the same. Where: pytorch/pytorch issue 61165; tracel-ai/burn
issue 1056; Howuhh/faster-trajectory-transformer issue 3; SHI-Labs/Compact-Transformers issue 25;
AnswerDotAI/ModernBERT issue 243. With unit gains and idle blocks it is hidden by the final norm.
"""

import torch

import refimpl

MUST_BREAK = (
    "block.identity-without-corrections",
    "block.stream-is-not-normalised",
    "block.last-gradient-falls-with-depth",
    "block.norm-sublayer-add-twice",
)


class Transformer(refimpl.Transformer):
    def forward(self, tokens, cache=None):
        start = cache.n_tokens if cache is not None else 0
        positions = torch.arange(start, start + tokens.shape[-1], device=tokens.device)
        x = self.model["embed_tokens"](tokens)
        for i, layer in enumerate(self.model["layers"]):
            first, second = layer["input_layernorm"], layer["post_attention_layernorm"]
            x = self.norm(first, x + self.attend(layer, x, positions, cache, i))
            x = self.norm(second, x + self.feed(layer["mlp"], x))
        return self.lm_head(self.norm(self.model["norm"], x))
