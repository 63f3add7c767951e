"""Casts back to 16 bits before the gain multiplies, as Hugging Face's Llama does (Gemma's casts after).

Both directions were called the bug: vllm-project/vllm issue 42325 and PR 42379; Lightning-AI/litgpt
issue 1031. Both are within rounding of the formula.
"""

import torch

from mutants.parts import widen


def rms_norm(x, weight, *, eps=1e-6):
    wide = widen(x)
    return (wide * torch.rsqrt(wide.square().mean(dim=-1, keepdim=True) + eps)).to(x.dtype) * weight
