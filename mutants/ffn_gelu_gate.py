"""GELU on the gate where SiLU is meant.

Where: huggingface/candle PRs 991, 3747 and 3991; togethercomputer/stripedhyena PR 9.
"""

import torch.nn.functional as F

MUST_BREAK = ("ffn.gate-is-no-dimmer", "ffn.formula")
SPREADS = ("contract", "training")


def feed_forward(x, w_gate, w_up, w_down):
    return (F.gelu(x @ w_gate) * (x @ w_up)) @ w_down
