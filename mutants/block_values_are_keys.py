"""Reads the values from the key matrix: W_v is loaded and never used.

Shapes and parameter counts are right.
"""

import refimpl
from refimpl.transformer import merge, split

MUST_BREAK = ("block.one-input-three-projections",)
SPREADS = ("contract", "cost", "lm-head", "rope", "serving", "training")


class Transformer(refimpl.Transformer):
    def attend(self, layer, x, positions, cache, i):
        w, base = layer["self_attn"], self.config.rope_base
        q = split(w["q_proj"](x), self.config.n_heads)
        k = split(w["k_proj"](x), self.config.n_kv_heads)
        v = split(w["v_proj"](x), self.config.n_kv_heads)
        v = split(w["k_proj"](x), self.config.n_kv_heads)
        q, k = self.rope(q, positions, base=base), self.rope(k, positions, base=base)
        if cache is not None:
            k, v = cache.extend(i, k, v)
        return w["o_proj"](merge(self.attention(q, k, v, causal=True)))
