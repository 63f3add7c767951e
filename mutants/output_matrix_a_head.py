"""Gives each head an output matrix of its own, d_head by d_head, before W_o mixes the heads.

Parameters then depend on the number of heads. Set to the identity they change no answer.
"""

import torch
from torch import nn

import refimpl

MUST_BREAK = ("cost.whole-model-parameters", "cost.llama-2-7b-parameters", "cost.layer-flops")
SPREADS = ("bytes", "context", "heads", "lm-head", "rope", "serving", "training")


class Transformer(refimpl.Transformer):
    def __init__(self, config, *, device, dtype):
        super().__init__(config, device=device, dtype=dtype, attention=self.with_output)
        eye = torch.eye(config.d_head, device=device, dtype=dtype)
        self.outputs = nn.Parameter(eye.repeat(config.n_layers, config.n_heads, 1, 1))
        self.layer = 0

    def with_output(self, q, k, v, **options):
        return refimpl.attention(q, k, v, **options) @ self.outputs[self.layer]

    def attend(self, layer, x, positions, cache, i):
        self.layer = i
        return super().attend(layer, x, positions, cache, i)

    def load_state_dict(self, weights):
        return super().load_state_dict({**weights, "outputs": self.outputs})
