"""A Llama made of x-transformers' TransformerWrapper and Decoder, with its own mask, tables and cache.

Weights are reordered for its pairs (adjacent) and heads (query head h reads key/value head h % n_kv_heads).
The bias that GLU keeps is set to 0, and the option by which Decoder's gains are 1 + g is off. It is told to
keep W_o where there is one head: by default it has none there. A cached pass says by cache_age how many
tokens are new. Softmax is float32 inside; RoPE's tables are cast with the model.
"""

import torch
from x_transformers import Decoder, TransformerWrapper

from adapters.x_transformers_attend import DTYPES, NO_EPS, by_remainder, turning

__all__ = ["DTYPES", "Transformer"]

GLU_BIAS = {"kind": "defect", "reason": "ff_no_bias=True leaves GLU's projection its bias"}
KNOWN_BREAKS = [
    {"claim": "block.norm-sublayer-add-twice", "dtype": "float32", **NO_EPS},
    {"claim": "rope.no-parameters", **GLU_BIAS},
    {"claim": "context.no-length-in-weights", **GLU_BIAS},
    {
        "claim": "rope.goes-on-in-long-texts",
        "dtype": "bfloat16",
        "kind": "defect",
        "reason": "a model cast to bfloat16 takes RotaryEmbedding's rates along, and positions follow them",
    },
]
NAMES = (
    "input_layernorm", "self_attn.q_proj", "self_attn.k_proj", "self_attn.v_proj", "self_attn.o_proj",
    "post_attention_layernorm", "mlp.gate_proj", "mlp.up_proj", "mlp.down_proj",
)  # fmt: skip


class Cache:
    held = None

    @property
    def nbytes(self):
        return (
            sum(x.nbytes for one in self.held.attn_intermediates for x in one.cached_kv) if self.held else 0
        )


class Transformer(TransformerWrapper):
    def __init__(self, c, *, device, dtype):
        with torch.device(device):
            layers = Decoder(
                dim=c.d_model, depth=c.n_layers, heads=c.n_heads, attn_kv_heads=c.n_kv_heads,
                attn_dim_head=c.d_head, use_rmsnorm=True, ff_glu=True, ff_swish=True, ff_no_bias=True,
                ff_mult=(c.d_ff + 0.5) / c.d_model, rotary_pos_emb=True, rotary_emb_dim=c.d_head,
                norm_add_unit_offset=False, attn_project_out=True, verbose=False,
            )  # fmt: skip
            layers.rotary_pos_emb = turning(c.d_head, c.rope_base)
            super().__init__(
                num_tokens=c.n_vocab, max_seq_len=0, attn_layers=layers, tie_embedding=c.tie_embeddings,
                tie_embedding_scale=1.0,
            )  # fmt: skip
        self.config = c
        self.to(dtype).eval()

    def forward(self, tokens, cache=None):
        if cache is None:
            return super().forward(tokens)
        logits, cache.held = super().forward(
            tokens, cache=cache.held, input_not_include_cache=True, cache_age=tokens.shape[1],
            return_intermediates=True,
        )  # fmt: skip
        return logits

    def new_cache(self):
        return Cache()

    def load_state_dict(self, weights):
        c = self.config
        state = {
            "token_emb.emb.weight": weights["model.embed_tokens.weight"],
            "attn_layers.final_norm.g": weights["model.norm.weight"],
            "attn_layers.rotary_pos_emb.inv_freq": self.attn_layers.rotary_pos_emb.inv_freq,
        }
        if not c.tie_embeddings:
            state["to_logits.weight"] = weights["lm_head.weight"]

        def pairs(w):  # rows of a head: halves -> adjacent
            return w.unflatten(0, (-1, 2, c.d_head // 2)).transpose(1, 2).flatten(0, 2)

        def heads(w, dim):
            return by_remainder(w.unflatten(dim, (-1, c.d_head)), c.n_kv_heads, dim).flatten(dim, dim + 1)

        for i in range(c.n_layers):
            norm_1, q, k, v, o, norm_2, gate, up, down = (
                weights[f"model.layers.{i}.{name}.weight"] for name in NAMES
            )
            attention, ffn = (f"attn_layers.layers.{2 * i + j}." for j in (0, 1))
            state |= {
                attention + "0.0.g": norm_1,
                attention + "1.to_q.weight": heads(pairs(q), 0),
                attention + "1.to_k.weight": pairs(k),
                attention + "1.to_v.weight": v,
                attention + "1.to_out.weight": heads(o, 1),
                ffn + "0.0.g": norm_2,
                ffn + "1.ff.0.proj.weight": torch.cat((up, gate)),
                ffn + "1.ff.0.proj.bias": up.new_zeros(2 * c.d_ff),
                ffn + "1.ff.2.weight": down,
            }
        return super().load_state_dict(state)
