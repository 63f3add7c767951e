"""The numbers that fix a decoder's shape, and the published ones that the documents use."""

from dataclasses import dataclass, replace


@dataclass(frozen=True)
class ModelConfig:
    """Sizes of a decoder-only transformer: pre-norm, RoPE, SwiGLU, grouped heads, no biases.

    n_vocab: tokens in the vocabulary         d_model: width of the residual stream
    n_layers: blocks in series                n_heads: query heads
    n_kv_heads: key/value heads               d_head: width of one head
    d_ff: width of the feed-forward's middle  tie_embeddings: one table for input and output
    rope_base: base of RoPE's rates           norm_eps: RMSNorm's epsilon

    d_head is always given: Qwen3 and Mistral-Nemo have n_heads * d_head != d_model.
    Raises ValueError when a size is not a positive integer, when n_heads is no multiple of
    n_kv_heads, or when d_head is odd (RoPE turns pairs of dimensions).
    """

    n_vocab: int
    d_model: int
    n_layers: int
    n_heads: int
    n_kv_heads: int
    d_head: int
    d_ff: int
    tie_embeddings: bool = False
    rope_base: float = 10000.0
    norm_eps: float = 1e-6

    def __post_init__(self) -> None:
        for name in ("n_vocab", "d_model", "n_layers", "n_heads", "n_kv_heads", "d_head", "d_ff"):
            value = getattr(self, name)
            if not isinstance(value, int) or value < 1:
                raise ValueError(f"{name} is a positive integer, not {value!r}")
        if self.n_heads % self.n_kv_heads:
            raise ValueError(
                f"n_heads is a multiple of n_kv_heads, not {self.n_heads} over {self.n_kv_heads}"
            )
        if self.d_head % 2:
            raise ValueError(f"d_head is even, because RoPE turns pairs, not {self.d_head}")

    def but(self, **changes: object) -> "ModelConfig":
        """The same shape with some numbers changed."""
        return replace(self, **changes)  # type: ignore[arg-type]


LLAMA_3_8B = ModelConfig(
    n_vocab=128256, d_model=4096, n_layers=32, n_heads=32, n_kv_heads=8, d_head=128, d_ff=14336,
    rope_base=500000.0, norm_eps=1e-5,
)  # fmt: skip
LLAMA_3_70B = LLAMA_3_8B.but(d_model=8192, n_layers=80, n_heads=64, d_ff=28672)
LLAMA_2_7B = ModelConfig(
    n_vocab=32000, d_model=4096, n_layers=32, n_heads=32, n_kv_heads=32, d_head=128, d_ff=11008,
    norm_eps=1e-5,
)  # fmt: skip
LLAMA_3_2_1B = LLAMA_3_8B.but(
    d_model=2048, n_layers=16, d_head=64, d_ff=8192, tie_embeddings=True
)  # fmt: skip

# GPT-2 XL is another architecture (learned positions, LayerNorm, GELU, biases): only its shape is used.
GPT2_XL_BLOCK = {"d_model": 1600, "n_heads": 25, "d_head": 64, "d_ff": 6400}

PUBLISHED = {
    "llama-3-8b": LLAMA_3_8B,
    "llama-3-70b": LLAMA_3_70B,
    "llama-2-7b": LLAMA_2_7B,
    "llama-3.2-1b": LLAMA_3_2_1B,
}
