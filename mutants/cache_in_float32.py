"""Keeps the cache in float32 whatever the model's dtype: twice the bytes of a 16-bit cache.

Where: oarriaga/paz PR 415, a cache in another dtype than the pass. float32 tables of RoPE promote the keys,
and nobody casts them back before they are cached.
"""

import refimpl

MUST_BREAK = ("serving.cache-in-16-bit", "serving.cache-by-kv-heads", "serving.model-cache-as-built")


class Cache(refimpl.Cache):
    def extend(self, i, k, v):
        dtype = k.dtype
        k, v = super().extend(i, k.float(), v.float())
        return k.to(dtype), v.to(dtype)


class Transformer(refimpl.Transformer):
    def new_cache(self):
        return Cache(self.config.n_layers)
