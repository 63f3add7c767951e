"""Hugging Face transformers' GPT-NeoX: its attention and its RoPE.

attention: transformers.models.gpt_neox's eager_attention_forward with an end-aligned mask made here; it knows
no grouped heads, so keys and values are repeated here. rope: GPTNeoXRotaryEmbedding and its own
apply_rotary_pos_emb, over the whole head (rotary_pct=1; it may turn part of it). The rest of it is by design
another model: LayerNorm, GELU without a gate, parallel sublayers, and heads of d_model / n_heads only.
Softmax and RoPE's tables are float32 inside, whatever the dtype, so float64 is not declared.
"""

from transformers import GPTNeoXConfig
from transformers.models.gpt_neox import modeling_gpt_neox

from adapters import transformers_llama as llama

DTYPES = ("float32", "bfloat16", "float16")
KNOWN_BREAKS = [llama.OVERFLOWS]


def attention(q, k, v, *, causal=False, scale=None):
    k, v = (x.repeat_interleave(q.shape[1] // k.shape[1], dim=1) for x in (k, v))
    forward = modeling_gpt_neox.eager_attention_forward
    return llama.attention(q, k, v, causal=causal, scale=scale, forward=forward)


def rope(x, positions, *, base=10000.0):
    turned = {"rope_type": "default", "rope_theta": base, "partial_rotary_factor": 1.0}
    made = GPTNeoXConfig(hidden_size=x.shape[-1], num_attention_heads=1, rope_parameters=turned)
    cos, sin = modeling_gpt_neox.GPTNeoXRotaryEmbedding(made).to(x.device)(x, positions[None])
    return modeling_gpt_neox.apply_rotary_pos_emb(x, x, cos, sin)[0]
