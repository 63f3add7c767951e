"""Holds the cache's offset as one tensor, which the first layer has advanced when the others read it.

One-layer models are right. Where: ml-explore/mlx-lm issues 1097 and 1699, PR 1396: `offset = cache.offset`
is the same object that `cache.offset += n` moves.
"""

import refimpl

MUST_BREAK = ("generation.cached-equals-full", "generation.no-cache-is-an-empty-cache")
SPREADS = ("contract",)


class Transformer(refimpl.Transformer):
    def attend(self, layer, x, positions, cache, i):
        if cache is not None and i > 0 and positions[0] > 0:
            positions = positions + len(positions)
        return super().attend(layer, x, positions, cache, i)
