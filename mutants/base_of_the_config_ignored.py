"""Turns queries and keys with RoPE's default base, whatever the config says.

Where: configs that keep rope_theta under another key are read with its default.
"""

import refimpl

MUST_BREAK = ("rope.base-is-the-configs",)
SPREADS = ("block",)


class Transformer(refimpl.Transformer):
    def __init__(self, config, *, device, dtype):
        super().__init__(config, device=device, dtype=dtype)
        self.rope = lambda x, positions, *, base: refimpl.rope(x, positions)
