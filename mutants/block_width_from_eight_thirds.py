"""Takes d_ff from Llama's rule of 8/3 d_model and ignores the config's.

Right for Llama-2-7B, wrong for Llama 3.
"""

import refimpl

MUST_BREAK = ("ffn.three-matrices", "ffn.share-of-a-block", "block.two-sublayers-and-two-norms")


class Transformer(refimpl.Transformer):
    def __init__(self, config, **place):
        d_ff = 256 * -(-8 * config.d_model // (3 * 256))
        super().__init__(config.but(d_ff=d_ff), **place)
