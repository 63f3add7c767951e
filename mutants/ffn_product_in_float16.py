"""Multiplies gate and content in float16, where 300 times 300 overflows.

Where: unslothai/unsloth-zoo PR 600. bfloat16 is not affected there.
"""

import torch.nn.functional as F

MUST_BREAK = ("ffn.far-gates",)
SPREADS = ("contract", "training")


def feed_forward(x, w_gate, w_up, w_down):
    product = F.silu(x @ w_gate).half() * (x @ w_up).half()
    return product.to(x.dtype) @ w_down
