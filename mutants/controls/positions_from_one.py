"""Counts the model's positions from 1.

Correct: RoPE's scores depend on differences of positions only. Where: PrimeIntellect-ai/prime-rl PR 3466.
"""

import refimpl


class Transformer(refimpl.Transformer):
    def attend(self, layer, x, positions, cache, i):
        return super().attend(layer, x, positions + 1, cache, i)
