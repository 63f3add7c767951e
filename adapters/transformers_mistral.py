"""Hugging Face transformers' Mistral, without its sliding window: the same architecture as Llama.

attention: transformers.models.mistral's eager_attention_forward, with an end-aligned mask made here (inside
the whole model the library makes its own). rope: MistralRotaryEmbedding and apply_rotary_pos_emb. rms_norm:
MistralRMSNorm. feed_forward: MistralMLP. Transformer: MistralForCausalLM with sliding_window=None and a
DynamicCache. Softmax, norm and RoPE's tables are float32 inside, so float64 is not declared.
"""

from functools import partial

from transformers import MistralConfig, MistralForCausalLM
from transformers.models.mistral import modeling_mistral

from adapters import transformers_llama as llama

DTYPES = ("float32", "bfloat16", "float16")
KNOWN_BREAKS = [llama.OVERFLOWS]

attention = partial(llama.attention, forward=modeling_mistral.eager_attention_forward)
rope = partial(llama.rope, tables=modeling_mistral.MistralRotaryEmbedding, kind=MistralConfig)
rms_norm = partial(llama.rms_norm, norm=modeling_mistral.MistralRMSNorm)
feed_forward = partial(llama.feed_forward, mlp=modeling_mistral.MistralMLP, kind=MistralConfig)


class Transformer(llama.Transformer):
    language_model = MistralForCausalLM
    config = staticmethod(partial(llama.config, kind=MistralConfig, sliding_window=None))
