"""Embeds by multiplying one-hot rows with the table.

The answers are right; a token costs 2 n_vocab d_model FLOPs more and all of the table is read, where a lookup
costs nothing and reads one row.
"""

import torch.nn.functional as F

import refimpl

MUST_BREAK = (
    "cost.two-flops-a-weight",
    "serving.step-reads-weights-once",
    "cost.tied-table-still-multiplies",
)
SPREADS = ("lm-head", "training")


class Transformer(refimpl.Transformer):
    def __init__(self, config, *, device, dtype):
        super().__init__(config, device=device, dtype=dtype)
        self.model["embed_tokens"].forward = self.embed

    def embed(self, tokens):
        table = self.model["embed_tokens"].weight
        if tokens.is_meta:
            return table.new_empty(*tokens.shape, len(table)) @ table
        return F.one_hot(tokens, len(table)).to(table.dtype) @ table
