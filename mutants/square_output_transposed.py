"""Transposes W_o while loading wherever it is square, as it is where the heads add up to the stream.

A wrong shape would be noticed; a square one is not.
"""

import refimpl

MUST_BREAK = ("block.norm-sublayer-add-twice",)


class Transformer(refimpl.Transformer):
    def load_state_dict(self, weights):
        def turned(name, w):
            return w.mT if name.endswith("o_proj.weight") and w.shape[0] == w.shape[1] else w

        return super().load_state_dict({name: turned(name, w) for name, w in weights.items()})
