"""Turns adjacent pairs of dimensions with weights laid out for half-split pairs.

Reordering the rows of W_q and W_k once more on loading comes to the same. Where: ggml-org/llama.cpp issues
2376 and 3018; jzhang38/TinyLlama issue 24; huggingface/transformers issue 25199. Position 0 is right.
"""

import refimpl
from refimpl.transformer import merge, split

MUST_BREAK = ("rope.after-projection", "block.norm-sublayer-add-twice")


class Transformer(refimpl.Transformer):
    def attend(self, layer, x, positions, cache, i):
        w, base = layer["self_attn"], self.config.rope_base
        q = split(w["q_proj"](x), self.config.n_heads)
        k = split(w["k_proj"](x), self.config.n_kv_heads)
        v = split(w["v_proj"](x), self.config.n_kv_heads)

        def turned(t):
            t = self.rope(t.unflatten(-1, (-1, 2)).mT.flatten(-2), positions, base=base)
            return t.unflatten(-1, (2, -1)).mT.flatten(-2)

        q, k = turned(q), turned(k)
        if cache is not None:
            k, v = cache.extend(i, k, v)
        return w["o_proj"](merge(self.attention(q, k, v, causal=True)))
