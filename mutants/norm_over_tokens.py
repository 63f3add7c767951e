"""Takes the mean square over tokens and features together: a token's norm sees its neighbours.

Where: bkitano/llama-from-scratch issue 4; kyegomez/zeta issue 180.
"""

import torch

from mutants.parts import widen

MUST_BREAK = ("norm.each-token-alone", "norm.output-has-unit-size")
SPREADS = ("attention", "causal", "contract", "training")


def rms_norm(x, weight, *, eps=1e-6):
    wide = widen(x)
    mean_square = wide.square().mean(dim=(-2, -1), keepdim=True)
    return (wide * torch.rsqrt(mean_square + eps) * widen(weight)).to(x.dtype)
