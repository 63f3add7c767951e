"""Keeps a grid of scores beside the keys and values, so that the cache grows with their square."""

import torch

import refimpl

MUST_BREAK = ("serving.cache-grows-linearly", "serving.cache-bytes")


class Cache(refimpl.Cache):
    @property
    def nbytes(self):
        return super().nbytes + sum(grid.nbytes for grid in self.grids())

    def grids(self):
        held = [layer[0] for layer in self.layers if layer is not None]
        return [torch.empty(*k.shape[:2], k.shape[2], k.shape[2], dtype=k.dtype, device="meta") for k in held]


class Transformer(refimpl.Transformer):
    def new_cache(self):
        return Cache(self.config.n_layers)
