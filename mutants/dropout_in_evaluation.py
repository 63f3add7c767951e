"""Leaves dropout on where nothing is trained.

Seen: pytorch/pytorch 124464, 99293; meta-pytorch/torchtune 1791.
"""

import torch

from mutants.parts import hide, scores, spread

MUST_BREAK = ("attention.weighted-average", "attention.formula")
SPREADS = ("causal", "contract", "generation", "gqa", "heads", "scale", "training")


def attention(q, k, v, *, causal=False, scale=None):
    w = hide(scores(q, k, scale), causal).softmax(-1)
    return (torch.nn.functional.dropout(w, 0.1) @ spread(v, q)).to(q.dtype)
