"""Counts positions from 0 in every cached call.

The first call is right, and a lone token after it attends as if it stood at the start. Where: Blaizzy/mlx-vlm
issue 1983, keras-team/keras-hub PR 1544, OpenNMT/CTranslate2 PR 1572.
"""

import refimpl

MUST_BREAK = ("generation.cached-equals-full", "generation.greedy-answer-is-one-token-a-trip")
SPREADS = ("contract",)


class Transformer(refimpl.Transformer):
    def attend(self, layer, x, positions, cache, i):
        positions = positions - positions[0]
        return super().attend(layer, x, positions, cache, i)
