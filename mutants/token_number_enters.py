"""Adds a number made of the token's id to its embedding, beside its row.

Seen as hashed n-gram tables and per-token biases; here the smallest such thing.
"""

import refimpl

MUST_BREAK = ("lm-head.only-the-row-enters",)
SPREADS = ("block",)


class Transformer(refimpl.Transformer):
    def __init__(self, config, *, device, dtype):
        super().__init__(config, device=device, dtype=dtype)
        self.model["embed_tokens"].register_forward_hook(
            lambda table, given, rows: rows + (given[0] / config.n_vocab).to(rows.dtype)[..., None]
        )
