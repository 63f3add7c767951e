"""Hugging Face transformers' Llama: its functions and its whole model, with eager attention.

attention: eager_attention_forward, with an end-aligned additive mask made here (inside the whole model the
library makes its own). rope: LlamaRotaryEmbedding and apply_rotary_pos_emb. rms_norm: LlamaRMSNorm.
feed_forward: LlamaMLP. Transformer: LlamaForCausalLM with a DynamicCache. Softmax, norm and RoPE's tables are
float32 inside, whatever the dtype, so float64 is not declared.
"""

from types import SimpleNamespace

import torch
from transformers import DynamicCache, LlamaConfig, LlamaForCausalLM
from transformers.models.llama import modeling_llama

DTYPES = ("float32", "bfloat16", "float16")
OVERFLOWS = {
    "claim": "scale.applies-before-float16-overflows",
    "kind": "limit",
    "dtype": "float16",
    "reason": "eager attention scales the scores after their product, which is inf in float16 from 65,520 on "
    "(huggingface/transformers #33317)",
}
KNOWN_BREAKS = [OVERFLOWS]


def attention(q, k, v, *, causal=False, scale=None, forward=modeling_llama.eager_attention_forward):
    n_q, n_k = q.shape[-2], k.shape[-2]
    mask = None
    if causal:
        hidden = torch.ones(1, 1, n_q, n_k, dtype=torch.bool, device=q.device).triu(1 + n_k - n_q)
        mask = torch.zeros_like(hidden, dtype=q.dtype).masked_fill(hidden, -torch.inf)
    module = SimpleNamespace(num_key_value_groups=q.shape[1] // k.shape[1], training=False, is_causal=False)
    scaling = q.shape[-1] ** -0.5 if scale is None else scale
    return forward(module, q, k, v, mask, scaling=scaling)[0].transpose(1, 2)


def rope(x, positions, *, base=10000.0, tables=modeling_llama.LlamaRotaryEmbedding, kind=LlamaConfig):
    made = tables(config(d_model=x.shape[-1], d_head=x.shape[-1], base=base, kind=kind)).to(x.device)
    cos, sin = made(x, positions[None])
    return modeling_llama.apply_rotary_pos_emb(x, x, cos, sin)[0]


def rms_norm(x, weight, *, eps=1e-6, norm=modeling_llama.LlamaRMSNorm):
    return torch.func.functional_call(norm(weight.shape[-1], eps), {"weight": weight}, (x,))


def feed_forward(x, w_gate, w_up, w_down, *, mlp=modeling_llama.LlamaMLP, **of):
    with torch.device("meta"):
        made = mlp(config(d_model=w_gate.shape[0], d_ff=w_gate.shape[1], **of))
    weights = {"gate_proj.weight": w_gate.mT, "up_proj.weight": w_up.mT, "down_proj.weight": w_down.mT}
    return torch.func.functional_call(made, weights, (x,))


def config(
    *, n_vocab=1, d_model, n_layers=1, n_heads=1, n_kv_heads=1, d_head=2, d_ff=1, base=1e4, eps=1e-6,
    tie=False, attn="eager", kind=LlamaConfig, **more,
):  # fmt: skip
    return kind(
        vocab_size=n_vocab, hidden_size=d_model, num_hidden_layers=n_layers, num_attention_heads=n_heads,
        num_key_value_heads=n_kv_heads, head_dim=d_head, intermediate_size=d_ff, tie_word_embeddings=tie,
        rope_parameters={"rope_type": "default", "rope_theta": base}, rms_norm_eps=eps,
        attn_implementation=attn, pad_token_id=None, bos_token_id=None, eos_token_id=None, **more,
    )  # fmt: skip


class Cache(DynamicCache):
    """The library's own cache, with its keys' and values' bytes."""

    @property
    def nbytes(self):
        return sum(
            t.nbytes for layer in self.layers if layer.is_initialized for t in (layer.keys, layer.values)
        )


class Transformer:
    language_model, config = LlamaForCausalLM, staticmethod(config)

    def __init__(self, c, *, device, dtype):
        if self.language_model is LlamaForCausalLM and c.d_model % c.n_heads:
            raise NotImplementedError("not offered: LlamaConfig wants d_model to be a multiple of n_heads")
        self.made = self.config(
            n_vocab=c.n_vocab, d_model=c.d_model, n_layers=c.n_layers, n_heads=c.n_heads,
            n_kv_heads=c.n_kv_heads, d_head=c.d_head, d_ff=c.d_ff, base=c.rope_base, eps=c.norm_eps,
            tie=c.tie_embeddings,
        )  # fmt: skip
        with torch.device(device):
            self.model = self.language_model(self.made).to(dtype).eval()
        self.named_parameters = self.model.named_parameters

    def __call__(self, tokens, cache=None):
        if cache is None and tokens.is_meta:
            cache = Cache()  # without a cache the library looks for packed sequences, by value
        past = {} if cache is None else {"cache": cache}
        return self.model(tokens, use_cache=cache is not None, **past).logits

    def new_cache(self):
        return Cache()

    def load_state_dict(self, weights):
        return self.model.load_state_dict(weights)
