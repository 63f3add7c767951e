"""Hugging Face transformers' Gemma, translated: its gains are 1 + w, so it is given w - 1.

attention: transformers.models.gemma's eager_attention_forward, with an end-aligned mask made here (inside the
whole model the library makes its own). rope: GemmaRotaryEmbedding and apply_rotary_pos_emb. rms_norm:
GemmaRMSNorm. feed_forward: GemmaMLP with silu in place of Gemma's own GELU. Transformer: GemmaForCausalLM
with silu and a DynamicCache; Llama's weights are translated as they are loaded, gains less 1 and embeddings
over the sqrt(d_model) that Gemma multiplies them by (one tied table cannot be both, so it is declined).
Softmax, norm and RoPE's tables are float32 inside, so float64 is not declared.
"""

from functools import partial

from transformers import GemmaConfig, GemmaForCausalLM
from transformers.models.gemma import modeling_gemma

from adapters import transformers_llama as llama

DTYPES = ("float32", "bfloat16", "float16")
KNOWN_BREAKS = [llama.OVERFLOWS]

attention = partial(llama.attention, forward=modeling_gemma.eager_attention_forward)
rope = partial(llama.rope, tables=modeling_gemma.GemmaRotaryEmbedding, kind=GemmaConfig)
raw_rms_norm = partial(llama.rms_norm, norm=modeling_gemma.GemmaRMSNorm)
raw_feed_forward = partial(llama.feed_forward, mlp=modeling_gemma.GemmaMLP, kind=GemmaConfig)
feed_forward = partial(raw_feed_forward, hidden_act="silu")


def rms_norm(x, weight, *, eps=1e-6):
    return raw_rms_norm(x, weight.float() - 1, eps=eps)


class Transformer(llama.Transformer):
    language_model, config = (
        GemmaForCausalLM,
        staticmethod(partial(llama.config, kind=GemmaConfig, hidden_act="silu")),
    )

    def load_state_dict(self, weights):
        if self.made.tie_word_embeddings:
            raise NotImplementedError("not offered: Gemma scales embeddings by sqrt(d_model), and no head")
        embed = "model.embed_tokens.weight"
        gains = {name: w - 1 for name, w in weights.items() if name.endswith("norm.weight")}
        made = {**weights, **gains, embed: weights[embed] / self.made.hidden_size**0.5}
        return self.model.load_state_dict(made)
