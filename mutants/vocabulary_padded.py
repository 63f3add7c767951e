"""Pads the vocabulary to a multiple of 1,000 and hands out the scores of the words that do not exist.

Where: nanoGPT pads GPT-2's 50,257 words to 50,304 for speed; here nobody cuts the rest off.
"""

import refimpl

MUST_BREAK = (
    "training.logits-outweigh-checkpoints",
    "training.one-pass-is-n-passes",
    "lm-head.table-has-a-row-a-token",
    "lm-head.flops-share",
)
SPREADS = ("block", "context", "cost", "generation", "heads", "rope", "serving")


class Transformer(refimpl.Transformer):
    def __init__(self, config, *, device, dtype):
        padded = config.but(n_vocab=-(-config.n_vocab // 1000) * 1000)
        super().__init__(padded, device=device, dtype=dtype)

    def load_state_dict(self, weights):
        own = self.state_dict()
        padded = {name: w.new_zeros(own[name].shape) for name, w in weights.items()}
        for name, w in weights.items():
            padded[name][: len(w)] = w
        return super().load_state_dict(padded)
