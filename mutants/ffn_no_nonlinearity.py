"""Two matrices with nothing between them: one matrix.

An FFN that lost both gate and activation. A single unit test on shapes passes.
"""

MUST_BREAK = ("ffn.not-additive", "ffn.two-patterns-a-slot")
SPREADS = ("contract", "training")


def feed_forward(x, w_gate, w_up, w_down):
    return (x @ w_up) @ w_down
