"""Hugging Face transformers' Mistral with a sliding window of 4 tokens: by design not full attention.

Transformer: MistralForCausalLM, eager, with sliding_window=4, the library's mask and its sliding cache
(DynamicCache with the model's config, which keeps the last 3 tokens of each layer). Each layer reads the last
4 tokens, so claims that every earlier token is read break, and those that the cache grows with every token:
a convention of this model (Jiang et al. 2023, Mistral 7B, §2).
"""

from functools import partial

from transformers import MistralConfig, MistralForCausalLM

from adapters import transformers_llama as llama
from adapters.known import breaks

DTYPES = ("float32", "bfloat16", "float16")
DIFFERS = {"block": "each layer reads the last 4 tokens"}
WINDOW = "each layer reads and keeps the last 4 tokens (Jiang et al. 2023, Mistral 7B, §2)"
KNOWN_BREAKS = breaks(
    "convention", WINDOW,
    "causal.probe", "generation.cache-makes-a-step-linear", "generation.reads-all-earlier-tokens",
    "serving.cache-bytes", "serving.cache-grows-linearly", "serving.cache-in-16-bit",
)  # fmt: skip


class Transformer(llama.Transformer):
    language_model = MistralForCausalLM
    config = staticmethod(partial(llama.config, kind=MistralConfig, sliding_window=4))

    def new_cache(self):
        return llama.Cache(config=self.made)
