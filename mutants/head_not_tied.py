"""Builds two tables where the config says one, and loads both.

After loading the scores are right; the parameters are not, and training would pull the tables apart. Where:
sgl-project/sglang PR 1508, vllm-project/vllm PR 3344.
"""

import refimpl

MUST_BREAK = ("lm-head.tying-saves-one-table", "lm-head.table-has-a-row-a-token")
SPREADS = ("cost",)


def Transformer(config, *, device, dtype):
    return refimpl.Transformer(config.but(tie_embeddings=False), device=device, dtype=dtype)
