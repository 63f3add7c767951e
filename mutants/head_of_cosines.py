"""Scores words by cosine similarity: each row of the head is divided by its length.

What 'a similarity search' says, and not what the head does.
"""

import torch.nn.functional as F

import refimpl

MUST_BREAK = ("lm-head.rows-compete-by-product",)
SPREADS = ("block", "serving")


class Transformer(refimpl.Transformer):
    def __init__(self, config, *, device, dtype):
        super().__init__(config, device=device, dtype=dtype)
        self.lm_head.forward = lambda x: F.linear(x, F.normalize(self.lm_head.weight, dim=-1))
