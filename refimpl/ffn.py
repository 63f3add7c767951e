"""The feed-forward network: SwiGLU."""

import torch.nn.functional as F
from torch import Tensor


def feed_forward(x: Tensor, w_gate: Tensor, w_up: Tensor, w_down: Tensor) -> Tensor:
    """(silu(x w_gate) * (x w_up)) w_down, each token by itself.

    x (..., d_model), w_gate and w_up (d_model, d_ff), w_down (d_ff, d_model) -> (..., d_model).
    Source: Shazeer 2020.
    """
    return (F.silu(x @ w_gate) * (x @ w_up)) @ w_down
