"""Turns the values with the queries and keys.

The output then depends on where a token stands, not only on what stands around it.
"""

import refimpl
from refimpl.transformer import merge, split

MUST_BREAK = ("block.values-carry-no-position", "block.norm-sublayer-add-twice")


class Transformer(refimpl.Transformer):
    def attend(self, layer, x, positions, cache, i):
        w, base = layer["self_attn"], self.config.rope_base
        q = split(w["q_proj"](x), self.config.n_heads)
        k = split(w["k_proj"](x), self.config.n_kv_heads)
        v = split(w["v_proj"](x), self.config.n_kv_heads)
        q, k, v = (self.rope(t, positions, base=base) for t in (q, k, v))
        if cache is not None:
            k, v = cache.extend(i, k, v)
        return w["o_proj"](merge(self.attention(q, k, v, causal=True)))
