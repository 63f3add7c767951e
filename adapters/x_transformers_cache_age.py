"""x-transformers' cached pass as it is by default: cache_age=1, whatever the number of new tokens.

Everything else is adapters.x_transformers_decoder's model.
"""

from adapters import x_transformers_decoder
from adapters.x_transformers_decoder import DTYPES, TransformerWrapper

__all__ = ["DTYPES", "Transformer"]

KNOWN_BREAKS = x_transformers_decoder.KNOWN_BREAKS + [
    {
        "claim": claim,
        "kind": "defect",
        "reason": "with a cache, all new tokens but the last cache_age are dropped without a word",
    }
    for claim in (
        "generation.cached-equals-full", "generation.caches-are-separate",
        "generation.no-cache-is-an-empty-cache", "serving.cache-bytes",
    )
]  # fmt: skip


class Transformer(x_transformers_decoder.Transformer):
    def forward(self, tokens, cache=None):
        if cache is None:
            return super().forward(tokens)
        logits, cache.held = TransformerWrapper.forward(
            self, tokens, cache=cache.held, input_not_include_cache=True, return_intermediates=True
        )
        return logits
