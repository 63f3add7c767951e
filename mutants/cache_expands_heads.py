"""Repeats keys and values for the query heads before it caches them, not after.

The answers are right and the cache is n_heads / n_kv_heads times too large: what grouped heads were to save.
"""

import refimpl

MUST_BREAK = (
    "serving.cache-bytes",
    "serving.cache-by-kv-heads",
    "serving.model-cache-as-built",
    "serving.cache-in-16-bit",
)


class Cache(refimpl.Cache):
    def __init__(self, n_layers, group):
        super().__init__(n_layers)
        self.group = group

    def extend(self, i, k, v):
        return super().extend(i, k.repeat_interleave(self.group, 1), v.repeat_interleave(self.group, 1))


class Transformer(refimpl.Transformer):
    def new_cache(self):
        return Cache(self.config.n_layers, self.config.n_heads // self.config.n_kv_heads)
