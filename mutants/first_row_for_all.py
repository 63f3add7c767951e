"""Gives every row of a batch the first row's answer.

Where: a batch index left out of a kernel's addressing (compare ml-explore/mlx 3494).
A batch of one, and a batch of equal rows, are right.
"""

import refimpl

MUST_BREAK = (
    "contract.attention-keeps-rows-apart",
    "contract.rope-keeps-rows-apart",
    "contract.norm-keeps-rows-apart",
    "contract.ffn-keeps-rows-apart",
    "contract.model-keeps-rows-apart",
)
SPREADS = (
    "attention",
    "block",
    "causal",
    "context",
    "ffn",
    "gqa",
    "lm-head",
    "norm",
    "rope",
    "scale",
    "training",
)


def first(answer):
    return answer[:1].expand_as(answer).contiguous()


def attention(q, k, v, *, causal=False, scale=None):
    return first(refimpl.attention(q, k, v, causal=causal, scale=scale))


def rope(x, positions, *, base=10000.0):
    return first(refimpl.rope(x, positions, base=base))


def rms_norm(x, weight, *, eps=1e-6):
    return first(refimpl.rms_norm(x, weight, eps=eps))


def feed_forward(x, w_gate, w_up, w_down):
    return first(refimpl.feed_forward(x, w_gate, w_up, w_down))


class Transformer(refimpl.Transformer):
    def forward(self, tokens, cache=None):
        return first(super().forward(tokens, cache))
