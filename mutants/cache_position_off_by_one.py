"""Counts the token that is being processed as one of the past, from the second call on.

A shift of all positions would not show; this one shifts the answer against its prompt. Where: skyzh/tiny-llm
PR 46, microsoft/onnxruntime-genai PR 2354, Physical-Intelligence/openpi issue 705.
"""

import refimpl

MUST_BREAK = ("generation.cached-equals-full", "generation.greedy-answer-is-one-token-a-trip")
SPREADS = ("contract",)


class Transformer(refimpl.Transformer):
    def attend(self, layer, x, positions, cache, i):
        positions = positions + int(positions[0] > 0)
        return super().attend(layer, x, positions, cache, i)
