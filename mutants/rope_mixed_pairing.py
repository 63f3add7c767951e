"""Lays its angles out for neighbouring pairs and turns pairs half a head apart: no rotation at all.

Where: facebookresearch/vjepa2 PR 15 (repeat for repeat_interleave); jmaczan/tiny-vllm PR 6; vllm-project/vllm
49290. Right for a head of two dimensions and at position 0.
"""

import torch

from mutants.parts import angles, widen

MUST_BREAK = ("rope.keeps-length", "rope.common-turn", "rope.relative-offset", "rope.composition")
SPREADS = ("context", "contract")


def rope(x, positions, *, base=10000.0):
    angle = angles(positions, x.shape[-1], base).repeat_interleave(2, dim=-1)
    a, b = widen(x).chunk(2, dim=-1)
    cos, sin = angle.cos().to(a.dtype), angle.sin().to(a.dtype)
    return (widen(x) * cos + torch.cat((-b, a), dim=-1) * sin).to(x.dtype)
