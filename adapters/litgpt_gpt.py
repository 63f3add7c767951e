"""LitGPT: its functions and its whole model, the GPT that runs every architecture it knows.

attention: CausalSelfAttention.scaled_dot_product_attention (PyTorch's kernel), with the library's own end
alignment: its flag for n_q = n_k, rows of build_mask_cache otherwise, as its cached model reads them; heads
are repeated here as its forward repeats them. rope: build_rope_cache and apply_rope. rms_norm: RMSNorm.
feed_forward: LLaMAMLP. Transformer: GPT, configured as a Llama, its q, k and v fused from Llama's weights;
the cache is LitGPT's KVCache of CAPACITY tokens, swapped in for each call, and counted by the tokens it
holds. Norm and RoPE's tables are float32 inside, whatever the dtype, so float64 is not declared.
"""

from types import SimpleNamespace

import torch
from litgpt.config import Config
from litgpt.model import (
    GPT,
    CausalSelfAttention,
    LLaMAMLP,
    RMSNorm,
    apply_rope,
    batched_index_select,
    build_mask_cache,
    build_rope_cache,
)

DTYPES = ("float32", "bfloat16", "float16")
CAPACITY = 4096  # on "meta", where it takes no memory, 131072
NAMES = {
    "norm_1": "input_layernorm", "norm_2": "post_attention_layernorm", "attn.proj": "self_attn.o_proj",
    "mlp.fc_1": "mlp.gate_proj", "mlp.fc_2": "mlp.up_proj", "mlp.proj": "mlp.down_proj",
}  # fmt: skip


def attention(q, k, v, *, causal=False, scale=None):
    n_q, n_k, d_k = q.shape[-2], k.shape[-2], q.shape[-1]
    if scale is not None and scale <= 0:
        raise NotImplementedError("not offered: LitGPT's scale is one over a square root")
    mask = build_mask_cache(n_k, q.device)[:, :, n_k - n_q :] if causal else q.new_ones(n_q, n_k).bool()
    config = SimpleNamespace(
        head_size=d_k, attention_scores_scalar=scale and scale**-2, attention_logit_softcapping=None
    )
    k, v = (x.repeat_interleave(q.shape[1] // k.shape[1], dim=1) for x in (k, v))
    module = SimpleNamespace(config=config, mscale=1.0)
    mask = None if causal and n_q == n_k else mask
    return CausalSelfAttention.scaled_dot_product_attention(module, q, k, v, mask).transpose(1, 2)


def rope(x, positions, *, base=10000.0):
    if positions.is_floating_point():
        raise NotImplementedError("not offered: LitGPT's tables hold whole positions")
    tables = build_rope_cache(int(positions.max()) + 1, x.shape[-1], x.device, base)
    return apply_rope(x, *(batched_index_select(table, 0, positions[None]) for table in tables))


def rms_norm(x, weight, *, eps=1e-6):
    return torch.func.functional_call(RMSNorm(len(weight), eps=eps), {"weight": weight}, (x,))


def feed_forward(x, w_gate, w_up, w_down):
    with torch.device("meta"):
        mlp = LLaMAMLP(SimpleNamespace(n_embd=len(w_gate), intermediate_size=len(w_down), bias=False))
    weights = {"fc_1.weight": w_gate.mT, "fc_2.weight": w_up.mT, "proj.weight": w_down.mT}
    return torch.func.functional_call(mlp, weights, (x,))


class Cache:
    n_tokens, layers = 0, ()

    @property
    def nbytes(self):
        return sum(x[:, :, : self.n_tokens].nbytes for layer in self.layers for x in (layer.k, layer.v))


class Transformer:
    def __init__(self, c, *, device, dtype):
        if c.tie_embeddings:
            raise NotImplementedError("not offered: LitGPT's GPT has two tables")
        made = Config(
            block_size=131072 if str(device) == "meta" else CAPACITY, n_layer=c.n_layers, n_embd=c.d_model,
            vocab_size=c.n_vocab, padded_vocab_size=c.n_vocab, n_head=c.n_heads, n_query_groups=c.n_kv_heads,
            head_size=c.d_head, intermediate_size=c.d_ff, rope_base=c.rope_base, rotary_percentage=1.0,
            norm_class_name="RMSNorm", norm_eps=c.norm_eps, mlp_class_name="LLaMAMLP", bias=False,
            parallel_residual=False,
        )  # fmt: skip
        with torch.device(device):
            self.model = GPT(made)
        self.model.to(dtype).eval()
        self.named_parameters, self.new_cache = self.model.named_parameters, Cache

    def __call__(self, tokens, cache=None):
        if cache is None:
            return self.model(tokens)
        if not cache.layers:
            self.model.set_kv_cache(len(tokens), device=tokens.device, dtype=self.model.lm_head.weight.dtype)
            cache.layers = [block.attn.kv_cache for block in self.model.transformer.h]
        for block, layer in zip(self.model.transformer.h, cache.layers, strict=True):
            block.attn.kv_cache = layer
        start, cache.n_tokens = cache.n_tokens, cache.n_tokens + tokens.shape[1]
        positions = torch.arange(start, cache.n_tokens, device=tokens.device)
        return self.model(tokens, positions, input_pos_maxp1=cache.n_tokens)

    def load_state_dict(self, weights):
        found = {
            "transformer.wte": "model.embed_tokens",
            "transformer.ln_f": "model.norm",
            "lm_head": "lm_head",
        }
        for i in range(len(self.model.transformer.h)):
            found |= {f"transformer.h.{i}.{a}": f"model.layers.{i}.{b}" for a, b in NAMES.items()}
        made = {f"{a}.weight": weights[f"{b}.weight"] for a, b in found.items()}
        for i in range(len(self.model.transformer.h)):
            qkv = [weights[f"model.layers.{i}.self_attn.{x}_proj.weight"] for x in "qkv"]
            made[f"transformer.h.{i}.attn.qkv.weight"] = torch.cat(qkv)
        return self.model.load_state_dict(made)
