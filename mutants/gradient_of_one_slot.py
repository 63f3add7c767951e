"""Lets the gradient through to one row of W_gate and W_up alone, as a mask for tuning a part does.

Outputs are right, and what gradient there is points the right way.
"""

import torch

import refimpl

MUST_BREAK = ("training.every-weight-gets-its-gradient",)


class Transformer(refimpl.Transformer):
    def __init__(self, config, *, device, dtype):
        super().__init__(config, device=device, dtype=dtype)
        for name, weight in self.named_parameters():
            if name.endswith(("gate_proj.weight", "up_proj.weight")):
                weight.register_hook(lambda grad: torch.cat((grad[:1], 0 * grad[1:])))
