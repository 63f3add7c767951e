"""Ties its two tables when it is made, and gives each its own copy when weights are loaded.

Where the checkpoint is loaded the scores are right; training would pull the tables apart.
"""

from torch import nn

import refimpl

MUST_BREAK = ("lm-head.tying-shares-one-table",)


class Transformer(refimpl.Transformer):
    def load_state_dict(self, state_dict, strict=True, assign=False):
        found = super().load_state_dict(state_dict, strict, assign)
        self.lm_head.weight = nn.Parameter(self.lm_head.weight.detach().clone())
        return found
