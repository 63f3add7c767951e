"""The reference: the smallest readable transformer block, one idea a file."""

from refimpl.attention import attention
from refimpl.config import (
    GPT2_XL_BLOCK,
    LLAMA_2_7B,
    LLAMA_3_2_1B,
    LLAMA_3_8B,
    LLAMA_3_70B,
    PUBLISHED,
    ModelConfig,
)
from refimpl.ffn import feed_forward
from refimpl.norm import rms_norm
from refimpl.rope import rope
from refimpl.transformer import Cache, Transformer

__all__ = [
    "GPT2_XL_BLOCK", "LLAMA_2_7B", "LLAMA_3_2_1B", "LLAMA_3_8B", "LLAMA_3_70B", "PUBLISHED",
    "Cache", "ModelConfig", "Transformer", "attention", "feed_forward", "rms_norm", "rope",
]  # fmt: skip
