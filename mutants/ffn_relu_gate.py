"""ReLU on the gate, as in the original FFN: negative gates shut.

Sparser than SiLU: half of all slots are silent.
"""

import torch.nn.functional as F

MUST_BREAK = ("ffn.gate-is-no-dimmer", "ffn.random-slots-respond")
SPREADS = ("contract", "training")


def feed_forward(x, w_gate, w_up, w_down):
    return (F.relu(x @ w_gate) * (x @ w_up)) @ w_down
