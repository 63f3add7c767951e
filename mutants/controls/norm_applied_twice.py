"""Normalises twice before the gain: the second time changes nothing, but for small rows.

Reported as redundant in ggml-org/llama.cpp PR 1925. Where eps is no longer small against mean(x^2) the
second pass undoes part of its effect, so it breaks norm.eps-is-added-under-the-root, and rightly so; the
gradients differ by as much.
"""

import torch

from mutants.parts import widen

MAY_BREAK = ("norm.eps-is-added-under-the-root", "contract.norm-passes-gradients")


def rms_norm(x, weight, *, eps=1e-6):
    def once(y):
        return y * torch.rsqrt(y.square().mean(dim=-1, keepdim=True) + eps)

    return (once(once(widen(x))) * widen(weight)).to(x.dtype)
