"""Merges the heads' answers number by number (0, 0, 0, 1, 1, 1) instead of head by head.

Shapes are right, and a model trained so would not mind; one that is loaded does.
"""

import refimpl

MUST_BREAK = ("heads.disjoint-without-w-o",)
SPREADS = ("block", "training")


class Transformer(refimpl.Transformer):
    def attend(self, layer, x, positions, cache, i):
        output = layer["self_attn"]["o_proj"]
        heads, d = self.config.n_heads, self.config.d_head
        kept = output.forward
        output.forward = lambda y: kept(y.unflatten(-1, (heads, d)).mT.flatten(-2))
        try:
            return super().attend(layer, x, positions, cache, i)
        finally:
            output.forward = kept
