"""Normalises before the head, and leaves the final norm's gain out.

Gains of 1 hide it, and a fresh model has no others.
"""

import torch

import refimpl

MUST_BREAK = ("lm-head.final-norm",)
SPREADS = ("block", "contract", "training")


class Transformer(refimpl.Transformer):
    def norm(self, gain, x):
        if gain is self.model["norm"]:
            return self.rms_norm(x, torch.ones_like(gain.weight), eps=self.config.norm_eps)
        return super().norm(gain, x)
