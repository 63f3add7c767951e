"""Clears the first number of every tensor it was given, after computing with it.

In-place scaling of queries or in-place rotation of cached keys does this to the caller.
"""

import refimpl

MUST_BREAK = (
    "contract.attention-writes-nothing",
    "contract.rope-writes-nothing",
    "contract.norm-writes-nothing",
    "contract.ffn-writes-nothing",
    "contract.model-writes-nothing",
)
SPREADS = (
    "attention",
    "causal",
    "context",
    "ffn",
    "generation",
    "gqa",
    "heads",
    "lm-head",
    "norm",
    "rope",
    "scale",
    "training",
)


def careless(f):
    def call(*inputs, **options):
        answer = f(*inputs, **options)
        for x in inputs:
            x.data[(0,) * x.ndim].zero_()
        return answer

    return call


attention, rope = careless(refimpl.attention), careless(refimpl.rope)
rms_norm, feed_forward = careless(refimpl.rms_norm), careless(refimpl.feed_forward)


class Transformer(refimpl.Transformer):
    def forward(self, tokens, cache=None):
        logits = super().forward(tokens, cache)
        self.lm_head.weight.data[0, 0].zero_()
        return logits
