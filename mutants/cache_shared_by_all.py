"""Makes all caches of a model around one list.

A first text is right; any other finds the tokens of the ones before it.
"""

import refimpl

MUST_BREAK = ("generation.caches-are-separate",)
SPREADS = ("contract",)


class Transformer(refimpl.Transformer):
    def __init__(self, config, *, device, dtype):
        super().__init__(config, device=device, dtype=dtype)
        self.only_cache = super().new_cache()

    def new_cache(self):
        return self.only_cache
