"""Takes d_ff from Llama's rule of 8/3 d_model and ignores the config's.

Right for Llama-2-7B, wrong for Llama 3. Weights are loaded as far as they go, so that small models answer
as they should.
"""

import refimpl

MUST_BREAK = ("ffn.three-matrices", "ffn.share-of-a-block", "block.two-sublayers-and-two-norms")
SPREADS = ("context", "cost", "lm-head", "rope", "serving", "training")


class Transformer(refimpl.Transformer):
    def __init__(self, config, **place):
        d_ff = 256 * -(-8 * config.d_model // (3 * 256))
        super().__init__(config.but(d_ff=d_ff), **place)

    def load_state_dict(self, weights):
        own = self.state_dict()
        padded = {name: w.new_zeros(own[name].shape) for name, w in weights.items()}
        for name, w in weights.items():
            corner = tuple(slice(n) for n in w.shape)
            padded[name][corner] = w[tuple(slice(n) for n in padded[name].shape)]
        return super().load_state_dict(padded)
