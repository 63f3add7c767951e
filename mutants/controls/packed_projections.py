"""One packed matrix for queries, keys and values and one for gate and up, as fused kernels want them.

Correct: names and shapes of the parameters differ, their number, their bytes and the arithmetic do not.
"""

import torch

import refimpl
from refimpl.transformer import linear


class Transformer(refimpl.Transformer):
    def __init__(self, config, *, device, dtype):
        super().__init__(config, device=device, dtype=dtype)
        self.sizes = [n * config.d_head for n in (config.n_heads, config.n_kv_heads, config.n_kv_heads)]
        self.packed, place = {}, {"device": device, "dtype": dtype}
        for layer in self.model["layers"]:
            layer["qkv"] = linear(config.d_model, sum(self.sizes), place)
            layer["gate_up"] = linear(config.d_model, 2 * config.d_ff, place)
            self.packed[id(layer["mlp"])] = layer["gate_up"]
            for name in ("q_proj", "k_proj", "v_proj"):
                del layer["self_attn"][name]
            for name in ("gate_proj", "up_proj"):
                del layer["mlp"][name]

    def attend(self, layer, x, positions, cache, i):
        q, k, v = layer["qkv"](x).split(self.sizes, dim=-1)
        given = {"q_proj": lambda x: q, "k_proj": lambda x: k, "v_proj": lambda x: v}
        return super().attend(
            {"self_attn": {**given, "o_proj": layer["self_attn"]["o_proj"]}}, x, positions, cache, i
        )

    def feed(self, w, x):
        gate, up = self.packed[id(w)].weight.chunk(2)
        return self.feed_forward(x, gate.mT, up.mT, w["down_proj"].weight.mT)

    def load_state_dict(self, weights):
        weights = dict(weights)
        for i in range(self.config.n_layers):
            at = f"model.layers.{i}"
            qkv = [weights.pop(f"{at}.self_attn.{name}_proj.weight") for name in "qkv"]
            gate_up = [weights.pop(f"{at}.mlp.{name}_proj.weight") for name in ("gate", "up")]
            weights |= {f"{at}.qkv.weight": torch.cat(qkv), f"{at}.gate_up.weight": torch.cat(gate_up)}
        return super().load_state_dict(weights)
