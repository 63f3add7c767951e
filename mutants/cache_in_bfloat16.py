"""Keeps cached keys and values in bfloat16 whatever the model computes in.

Steps differ from the full pass in the third digit. Where: oarriaga/paz PR 415, ggml-org/llama.cpp issue 7859.
"""

import torch

import refimpl

MUST_BREAK = ("generation.cached-equals-full",)
SPREADS = ("contract", "serving")


class Cache(refimpl.Cache):
    def extend(self, i, k, v):
        kept = super().extend(i, *(t.to(torch.bfloat16) for t in (k, v)))
        return tuple(t.to(k.dtype) for t in kept)


class Transformer(refimpl.Transformer):
    def new_cache(self):
        return Cache(self.config.n_layers)
