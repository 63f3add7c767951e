"""Caches the queries beside the keys and values, though no later step reads an old query."""

import torch

import refimpl

MUST_BREAK = ("serving.cache-bytes", "serving.cache-by-kv-heads", "serving.step-reads-the-cache-too")
SPREADS = ("generation",)


class Cache(refimpl.Cache):
    def __init__(self, n_layers):
        super().__init__(n_layers)
        self.queries = []

    @property
    def nbytes(self):
        return super().nbytes + sum(q.nbytes for q in self.queries)


class Transformer(refimpl.Transformer):
    def new_cache(self):
        return Cache(self.config.n_layers)

    def attend(self, layer, x, positions, cache, i):
        if cache is not None:
            cache.queries.append(torch.empty_like(layer["self_attn"]["q_proj"](x)))
        return super().attend(layer, x, positions, cache, i)
