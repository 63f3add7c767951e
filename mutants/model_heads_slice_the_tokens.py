"""Cuts (n, n_heads * d_head) into heads without a transpose: a head is a stretch of the sequence.

Shapes are right. The other misreading of the refresher's section 4; seen in teaching code.
"""

import refimpl

MUST_BREAK = ("heads.slice-only-q-k-v", "heads.order-is-free")
SPREADS = ("block", "causal", "contract", "generation", "gqa", "serving", "training")


def cut(x, n_heads):
    return x.reshape(x.shape[0], n_heads, x.shape[1], -1)


class Transformer(refimpl.Transformer):
    def attend(self, layer, x, positions, cache, i):
        w, c = layer["self_attn"], self.config
        q, k, v = (w[n](x) for n in ("q_proj", "k_proj", "v_proj"))
        q, k, v = cut(q, c.n_heads), cut(k, c.n_kv_heads), cut(v, c.n_kv_heads)
        q, k = self.rope(q, positions, base=c.rope_base), self.rope(k, positions, base=c.rope_base)
        out = self.attention(q, k, v, causal=True)
        return w["o_proj"](out.reshape(*x.shape[:2], -1))
