"""Hugging Face transformers' sdpa_attention_forward as called without a mask: its own idea of causal.

attention: integrations.sdpa_attention.sdpa_attention_forward with attention_mask=None and is_causal. The
causal mask judged is the library's: aligned at the first key for several queries, none for a single one.
The library's models give it a mask whenever a cache holds tokens, so that they are right
(transformers_llama_sdpa).
"""

from types import SimpleNamespace

from transformers.integrations.sdpa_attention import sdpa_attention_forward

from adapters.known import START_ALIGNED, breaks

REASON = "without a mask, is_causal is aligned at the first key (its source says so; pytorch/pytorch #108108)"
ONE_QUERY_IS_RIGHT = ("generation.greedy-answer-is-one-token-a-trip",)
KNOWN_BREAKS = breaks("convention", REASON, *(c for c in START_ALIGNED if c not in ONE_QUERY_IS_RIGHT))


def attention(q, k, v, *, causal=False, scale=None):
    module = SimpleNamespace(num_key_value_groups=q.shape[1] // k.shape[1])
    return sdpa_attention_forward(module, q, k, v, None, scaling=scale, is_causal=causal)[0].transpose(1, 2)
