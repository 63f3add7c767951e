"""mlx-lm's Llama as a whole model, with its own masks, tables and KVCache, on the CPU.

Parameters are kept as torch tensors and handed to MLX at each pass; gradients are MLX's (mx.vjp). Softmax,
norm and RoPE's tables are float32 inside, whatever the dtype. The cache grows by 256 tokens at a time: nbytes
counts the tokens held.
"""

import mlx.core as mx
import torch
from mlx.utils import tree_flatten, tree_unflatten
from mlx_lm.models.cache import KVCache
from mlx_lm.models.llama import Model, ModelArgs

from adapters.mlx_fast import DEVICES, DTYPES, Through

__all__ = ["DEVICES", "DTYPES", "Transformer"]


class Cache(list):
    """A KVCache for each layer."""

    @property
    def nbytes(self):
        return sum(
            x[..., : one.offset, :].nbytes for one in self if one.offset for x in (one.keys, one.values)
        )


class Transformer(torch.nn.Module):
    def __init__(self, c, *, device, dtype):
        super().__init__()
        if torch.device(device).type == "meta":
            raise NotImplementedError("not offered: MLX cannot run on meta")
        made = Model(ModelArgs(
            "llama", c.d_model, c.n_layers, c.d_ff, c.n_heads, c.norm_eps, c.n_vocab, head_dim=c.d_head,
            num_key_value_heads=c.n_kv_heads, rope_theta=c.rope_base, tie_word_embeddings=c.tie_embeddings,
        ))  # fmt: skip
        self.inner = [made]  # in a list, because torch would take MLX's module for an attribute of its own
        self.names, arrays = zip(*tree_flatten(made.parameters()), strict=True)
        self.weights = torch.nn.ParameterList(torch.empty(x.shape, dtype=dtype) for x in arrays)

    def named_parameters(self, **options):
        return zip(self.names, self.weights, strict=True)

    def forward(self, tokens, cache=None):
        (model,), ids = self.inner, mx.array(tokens)

        def function(*arrays):
            model.update(tree_unflatten(list(zip(self.names, arrays, strict=True))))
            return model(ids, cache)

        return Through.apply(function, *self.weights)

    def new_cache(self):
        return Cache(KVCache() for _ in self.inner[0].layers)

    def load_state_dict(self, weights):
        with torch.no_grad():
            for name, weight in zip(self.names, self.weights, strict=True):
                weight.copy_(weights[name])
