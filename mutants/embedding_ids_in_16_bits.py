"""Keeps token numbers in 16 bits: from 32,768 on they turn negative and find another row."""

import torch

import refimpl

MUST_BREAK = ("lm-head.only-the-row-enters",)


class Transformer(refimpl.Transformer):
    def forward(self, tokens, cache=None):
        return super().forward(tokens.to(torch.int16).long() % self.config.n_vocab, cache)
