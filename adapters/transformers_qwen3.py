"""Hugging Face transformers' Qwen3: Llama's block, plus an RMSNorm on every query and key head.

attention: transformers.models.qwen3's eager_attention_forward, with an end-aligned mask made here (inside the
whole model the library makes its own). rope: Qwen3RotaryEmbedding and apply_rotary_pos_emb. rms_norm:
Qwen3RMSNorm. feed_forward: Qwen3MLP. Transformer: Qwen3ForCausalLM with a DynamicCache; Llama's weights have
no q_norm and k_norm, which keep their gains of 1 and still normalise. Softmax, norm and RoPE's tables are
float32 inside, so float64 is not declared.
"""

from functools import partial

from transformers import Qwen3Config, Qwen3ForCausalLM
from transformers.models.qwen3 import modeling_qwen3

from adapters import transformers_llama as llama
from adapters.known import breaks

DTYPES = ("float32", "bfloat16", "float16")
DIFFERS = {"block": "queries and keys are normalised before RoPE turns them"}
NORMALISES = "Qwen3 normalises each query and key head, with 2 d_head gains a block (Qwen3 report, 2025, §2)"
COUNTS = (
    "context.no-length-in-weights", "heads.width-is-free",
    "bytes.weights-follow-the-format", "cost.llama-2-7b-parameters", "cost.rule-of-twelve",
    "cost.whole-model-parameters", "cost.model-as-built", "heads.params-constant",
    "lm-head.tying-saves-one-table", "rope.no-parameters",
)  # fmt: skip
KNOWN_BREAKS = [
    llama.OVERFLOWS,
    *breaks("convention", NORMALISES, *COUNTS),
]

attention = partial(llama.attention, forward=modeling_qwen3.eager_attention_forward)
rope = partial(llama.rope, tables=modeling_qwen3.Qwen3RotaryEmbedding, kind=Qwen3Config)
rms_norm = partial(llama.rms_norm, norm=modeling_qwen3.Qwen3RMSNorm)
feed_forward = partial(llama.feed_forward, mlp=modeling_qwen3.Qwen3MLP, kind=Qwen3Config)


class Transformer(llama.Transformer):
    language_model, config = Qwen3ForCausalLM, staticmethod(partial(llama.config, kind=Qwen3Config))

    def load_state_dict(self, weights):
        missing, unexpected = self.model.load_state_dict(weights, strict=False)
        if unexpected or any("q_norm" not in name and "k_norm" not in name for name in missing):
            raise KeyError(f"missing {missing}, unexpected {unexpected}")
