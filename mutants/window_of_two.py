"""Lets each token of the model see itself and the one before only, a window that no config names.

Two layers reach two tokens back; the rest of the text might as well not be there.
"""

import torch

import refimpl
from mutants.parts import hide, mix, scores

MUST_BREAK = ("generation.reads-all-earlier-tokens",)
SPREADS = ("block", "causal", "heads")


def attend(q, k, v, *, causal=False, scale=None):
    s = hide(scores(q, k, scale), causal)
    far = torch.ones_like(s, dtype=torch.bool).tril(s.shape[-1] - s.shape[-2] - 2)
    return mix(s.masked_fill(far, -torch.inf), q, v)


class Transformer(refimpl.Transformer):
    def __init__(self, config, *, device, dtype):
        super().__init__(config, device=device, dtype=dtype, attention=attend)
