"""Ties the head to the embedding whatever the config says.

Where: huggingface/transformers PR 42612, NVIDIA/TensorRT-LLM PR 13664: a head of its own is overwritten by
the embedding.
"""

import refimpl

MUST_BREAK = (
    "lm-head.tying-shares-one-table",
    "lm-head.tying-saves-one-table",
    "lm-head.rows-compete-by-product",
)
SPREADS = ("block", "context", "cost", "generation", "heads", "rope", "serving", "training")


class Transformer(refimpl.Transformer):
    def __init__(self, config, *, device, dtype):
        super().__init__(config.but(tie_embeddings=True), device=device, dtype=dtype)

    def load_state_dict(self, weights):
        weights = {name: w for name, w in weights.items() if name != "lm_head.weight"}
        return super().load_state_dict(weights)
