"""Turns the stream before W_q and W_k in place of queries and keys after them.

Where: the left column of the refresher's figure in §14, with a rotation. Its scores
see more than offsets.
"""

import refimpl
from refimpl.transformer import merge, split

MUST_BREAK = ("rope.after-projection",)
SPREADS = ("block",)


class Transformer(refimpl.Transformer):
    def attend(self, layer, x, positions, cache, i):
        config, w = self.config, layer["self_attn"]
        turned = refimpl.rope(x[:, None], positions, base=config.rope_base)[:, 0]
        q = split(w["q_proj"](turned), config.n_heads)
        k, v = (split(w[name](y), config.n_kv_heads) for name, y in (("k_proj", turned), ("v_proj", x)))
        if cache is not None:
            k, v = cache.extend(i, k, v)
        return w["o_proj"](merge(self.attention(q, k, v, causal=True)))
