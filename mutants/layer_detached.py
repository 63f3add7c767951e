"""Cuts the gradient at the first block's attention, as a stray .detach() does.

The scores are right and the rest of the model learns; four matrices and a norm never do.
"""

import refimpl

MUST_BREAK = ("training.every-weight-gets-its-gradient", "training.optimizer-keeps-two-per-weight")
SPREADS = ("contract",)


class Transformer(refimpl.Transformer):
    def attend(self, layer, x, positions, cache, i):
        read = super().attend(layer, x, positions, cache, i)
        return read.detach() if i == 0 else read
