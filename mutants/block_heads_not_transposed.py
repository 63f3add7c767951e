"""Merges heads without the transpose: pieces of other tokens land in a token's row.

Where: jsbaan/transformer-from-scratch PR 6. It trains anyway.
"""

import refimpl
from refimpl.transformer import split

MUST_BREAK = ("heads.order-is-free", "block.norm-sublayer-add-twice")
SPREADS = ("causal", "contract", "generation", "training")


class Transformer(refimpl.Transformer):
    def attend(self, layer, x, positions, cache, i):
        w, base = layer["self_attn"], self.config.rope_base
        q = split(w["q_proj"](x), self.config.n_heads)
        k = split(w["k_proj"](x), self.config.n_kv_heads)
        v = split(w["v_proj"](x), self.config.n_kv_heads)
        q, k = self.rope(q, positions, base=base), self.rope(k, positions, base=base)
        if cache is not None:
            k, v = cache.extend(i, k, v)
        return w["o_proj"](self.attention(q, k, v, causal=True).reshape(*x.shape[:-1], -1))
