"""Closed forms for what a model costs: compared in the spec with what is measured."""

from refimpl.config import ModelConfig


def attention_parameters(c: ModelConfig) -> int:
    """W_q, W_k, W_v and W_o of one block."""
    return 2 * c.d_model * c.d_head * (c.n_heads + c.n_kv_heads)


def ffn_parameters(c: ModelConfig) -> int:
    """W_gate, W_up and W_down of one block."""
    return 3 * c.d_model * c.d_ff


def n_parameters(c: ModelConfig) -> int:
    """All parameters: blocks with their two norms, the final norm, one or two tables."""
    per_block = attention_parameters(c) + ffn_parameters(c) + 2 * c.d_model
    tables = c.n_vocab * c.d_model * (1 if c.tie_embeddings else 2)
    return c.n_layers * per_block + c.d_model + tables


def matmul_parameters(c: ModelConfig) -> int:
    """The parameters that multiply a token: no embedding rows (a lookup), no norm gains."""
    return c.n_layers * (attention_parameters(c) + ffn_parameters(c)) + c.n_vocab * c.d_model


def score_flops(c: ModelConfig, n_q: int, n_k: int) -> int:
    """q k^T and weights v of one layer, the full rectangle: each 2 n_q n_k d_head a head."""
    return 2 * 2 * n_q * n_k * c.n_heads * c.d_head


def forward_flops(c: ModelConfig, n: int) -> int:
    """One pass over n tokens: 2 a matmul parameter and token, and the scores."""
    return 2 * matmul_parameters(c) * n + c.n_layers * score_flops(c, n, n)


def cache_bytes_per_token(c: ModelConfig, bytes_per_number: int) -> int:
    """One key and one value for each layer and key/value head."""
    return 2 * c.n_layers * c.n_kv_heads * c.d_head * bytes_per_number


def causal_score_flops(c: ModelConfig, n: int) -> int:
    """The scores' share that a causal layer needs: the lower triangle, (n + 1) / 2n of the rectangle."""
    return score_flops(c, n, n) * (n + 1) // (2 * n)


def score_grid_bytes(n_heads: int, n: int, bytes_per_number: int) -> int:
    """One layer's scores of one sequence, held all at once."""
    return n_heads * n * n * bytes_per_number
