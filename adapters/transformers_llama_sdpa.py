"""Hugging Face transformers' Llama with the library's own SDPA attention.

attention: integrations.sdpa_attention.sdpa_attention_forward, which repeats the key/value heads or asks
PyTorch's kernel to, with an end-aligned additive mask made here for causal calls. Transformer:
LlamaForCausalLM with attn_implementation="sdpa" and a DynamicCache, where the mask is the library's. Its
other functions are those of transformers_llama. Attention in float64 is float64 inside; 16-bit attention
accumulates in float32.
"""

from functools import partial

from transformers.integrations.sdpa_attention import sdpa_attention_forward

from adapters import transformers_llama as eager

attention = partial(eager.attention, forward=sdpa_attention_forward)


class Transformer(eager.Transformer):
    config = staticmethod(partial(eager.config, attn="sdpa"))

    def __init__(self, c, *, device, dtype):
        if str(dtype) == "torch.float64":
            raise NotImplementedError("not offered: the model's norms and RoPE tables stay in float32")
        super().__init__(c, device=device, dtype=dtype)
