"""Cuts the stream's gradient between blocks, so that each block learns from its own output alone.

Half of the skip path is lost: all weights still get a gradient, of the wrong size, at a lower price.
"""

import refimpl

MUST_BREAK = (
    "training.every-weight-gets-its-gradient",
    "training.backward-is-two-forwards",
    "training.six-per-matmul-weight",
)
SPREADS = ("contract",)


class Transformer(refimpl.Transformer):
    def attend(self, layer, x, positions, cache, i):
        return super().attend(layer, x.detach() if i == 1 else x, positions, cache, i)
