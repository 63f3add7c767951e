"""Scales its input by the largest entry first, and back at the end: zeros become NaN.

Scaling against overflow is sound; without a floor for the divisor it is not.
"""

import refimpl

MUST_BREAK = (
    "contract.attention-is-finite",
    "contract.rope-is-finite",
    "contract.norm-is-finite",
    "contract.ffn-is-finite",
)
SPREADS = ("attention", "causal", "heads", "norm", "rope")


def scaled(x):
    largest = x.abs().amax()
    return (x / largest) * largest


def attention(q, k, v, **options):
    return refimpl.attention(scaled(q), k, v, **options)


def rope(x, positions, **options):
    return refimpl.rope(scaled(x), positions, **options)


def rms_norm(x, weight, **options):
    return refimpl.rms_norm(scaled(x), weight, **options)


def feed_forward(x, w_gate, w_up, w_down):
    return refimpl.feed_forward(scaled(x), w_gate, w_up, w_down)
