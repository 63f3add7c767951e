"""Keeps one cache for all layers: each layer reads what the one before it wrote.

The classic slip of passing the same list to every block; one-layer models are right.
"""

import refimpl

MUST_BREAK = ("generation.cached-equals-full", "generation.no-cache-is-an-empty-cache")
SPREADS = ("contract", "serving")


class Cache(refimpl.Cache):
    def extend(self, i, k, v):
        past = self.layers[0]
        if past is not None and i > 0:
            return past
        return super().extend(0, k, v)


class Transformer(refimpl.Transformer):
    def new_cache(self):
        return Cache(self.config.n_layers)
