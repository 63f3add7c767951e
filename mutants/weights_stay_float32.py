"""Ignores the dtype it is asked for and keeps its weights in float32: twice the memory of a 16-bit model."""

import torch

import refimpl

MUST_BREAK = ("bytes.weights-follow-the-format", "serving.weights")
SPREADS = ("contract",)


def Transformer(config, *, device, dtype):
    return refimpl.Transformer(config, device=device, dtype=torch.float32)
