"""Answers without a gradient, and does not say so.

A kernel with a forward pass only, or a stray .data or .detach(), does this.
"""

import refimpl

MUST_BREAK = (
    "contract.attention-passes-gradients",
    "contract.rope-passes-gradients",
    "contract.norm-passes-gradients",
    "contract.ffn-passes-gradients",
    "contract.model-passes-gradients",
)
SPREADS = ("attention", "block", "causal", "generation", "scale", "training")


def cut(f):
    return lambda *inputs, **options: f(*inputs, **options).detach()


attention, rope = cut(refimpl.attention), cut(refimpl.rope)
rms_norm, feed_forward = cut(refimpl.rms_norm), cut(refimpl.feed_forward)


class Transformer(refimpl.Transformer):
    def forward(self, tokens, cache=None):
        return super().forward(tokens, cache).detach()
