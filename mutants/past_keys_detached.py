"""Stops the gradient to keys that come before the first query, as a cache kept without gradients does.

Outputs are right, and with as many queries as keys all is.
"""

import torch

import refimpl

MUST_BREAK = ("causal.past-keys-learn",)


def attention(q, k, v, *, causal=False, scale=None):
    n = k.shape[2] - q.shape[2] if causal else 0
    k, v = (torch.cat((x[:, :, :n].detach(), x[:, :, n:]), dim=2) for x in (k, v))
    return refimpl.attention(q, k, v, causal=causal, scale=scale)
