"""Writes token 129 over token 1 once its 128 slots are full, and goes on as if nothing were lost.

Where: Lightning-AI/litgpt issue 2182 and PR 2215, rajveer43/VeloxQuant-MLX PR 389. An error beyond the
capacity would do; a wrong answer does not.
"""

import refimpl

MUST_BREAK = ("generation.cached-equals-full",)


class Cache(refimpl.Cache):
    seen = 0

    @property
    def n_tokens(self):
        return self.seen

    def extend(self, i, k, v):
        self.seen += k.shape[-2] * (i == len(self.layers) - 1)
        k, v = super().extend(i, k, v)
        self.layers[i] = tuple(t[..., -128:, :] for t in (k, v))
        n_new = self.seen if self.seen <= 128 else 128
        return (k, v) if k.shape[-2] <= 128 or n_new < 128 else (k[..., -128:, :], v[..., -128:, :])


class Transformer(refimpl.Transformer):
    def new_cache(self):
        return Cache(self.config.n_layers)
