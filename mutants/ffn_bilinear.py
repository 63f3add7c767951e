"""No activation: gate and content multiplied as they are.

An activation whose name is not found may fall back to the identity. The doubling test passes.
"""

MUST_BREAK = ("ffn.gate-is-no-dimmer", "ffn.gate-and-content-roles")
SPREADS = ("contract", "training")


def feed_forward(x, w_gate, w_up, w_down):
    return ((x @ w_gate) * (x @ w_up)) @ w_down
