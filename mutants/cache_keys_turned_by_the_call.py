"""Caches keys before RoPE and turns all of them by the positions of the newest call.

Where: EleutherAI/gpt-neox PR 363, MemTensor/MemOS issue 2315, ggml-org/llama.cpp issue 4097: the phase of a
cached key no longer fits its place.
"""

import torch

import refimpl

MUST_BREAK = ("generation.cached-equals-full",)
SPREADS = ("contract",)


class Transformer(refimpl.Transformer):
    def __init__(self, config, *, device, dtype):
        super().__init__(
            config, device=device, dtype=dtype, rope=lambda x, positions, base: x, attention=self.read
        )

    def attend(self, layer, x, positions, cache, i):
        self.positions = positions
        return super().attend(layer, x, positions, cache, i)

    def read(self, q, k, v, *, causal, scale):
        n_new, n_past = q.shape[-2], k.shape[-2] - q.shape[-2]
        past = torch.arange(n_past, device=q.device) + self.positions[0] - (n_past if n_new > 1 else 0)
        at = torch.cat((past, self.positions))
        base = self.config.rope_base
        q, k = refimpl.rope(q, self.positions, base=base), refimpl.rope(k, at, base=base)
        return refimpl.attention(q, k, v, causal=causal)
