"""What a decoder of any kind is made of, as numbers, and what follows from them by closed forms.

The reference's ModelConfig is one architecture; Sizes also says biases, experts, latents, windows and
norms, and so covers most published decoders. The closed forms are exact arithmetic on the sizes; `skeleton`
lays out a block tensor by tensor, so that they have something to be compared with.
"""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass

import torch
from torch import Tensor

from refimpl.config import ModelConfig


@dataclass(frozen=True)
class Latent:
    """Latent attention: a latent of kv_rank and a rotary key of d_rope are cached for all heads together.

    q_rank: width of the queries' own latent; 0: queries are projected directly
    """

    q_rank: int
    kv_rank: int
    d_nope: int
    d_rope: int


@dataclass(frozen=True)
class Experts:
    """A router's choice: top_k of n experts, each d_ff wide, and one shared expert d_ff_shared wide."""

    n: int
    top_k: int
    d_ff: int
    d_ff_shared: int = 0
    shared_gate: bool = False
    router_bias: bool = False


@dataclass(frozen=True)
class Sizes:
    """Sizes of one decoder-only model.

    ffn_matrices: 3 gated, 2 plain         norm_numbers: numbers of a norm for each dimension (2 with a bias)
    qk_norm: "", "head" (one gain for a head's width) or "full" (one for all heads)
    windows: tokens that each layer sees, 0 for all; one entry a layer
    sparse: whether each layer has experts; one entry a layer
    d_value: width of one head's values    n_positions: rows of a learned table of positions, 0 for none
    sinks: a learned score a head          notes: what a reader of the numbers has to know
    """

    name: str
    model_type: str
    n_vocab: int
    d_model: int
    n_layers: int
    n_heads: int
    n_kv_heads: int
    d_head: int
    d_value: int
    d_ff: int
    tied: bool
    windows: tuple[int, ...]
    sparse: tuple[bool, ...]
    ffn_matrices: int = 3
    norm_numbers: int = 1
    norms_per_block: int = 2
    qkv_bias: bool = False
    o_bias: bool = False
    ffn_bias: bool = False
    head_bias: bool = False
    qk_norm: str = ""
    sinks: bool = False
    n_positions: int = 0
    embedding_norm: bool = False
    latent: Latent | None = None
    experts: Experts | None = None
    notes: tuple[str, ...] = ()

    def __str__(self) -> str:
        return self.name

    @property
    def kinds(self) -> Counter[bool]:
        """How many layers have experts (True) and how many are dense (False)."""
        return Counter(self.sparse)

    @property
    def reach(self) -> Counter[int]:
        """How many layers have each window; 0 is none."""
        return Counter(self.windows)


CONTEXTS = (1, 1024, 8192, 32768, 131072)


def contexts(s: Sizes) -> tuple[int, ...]:
    """Numbers of tokens to size for: no more than a learned table of positions has rows."""
    return tuple(n for n in CONTEXTS if n <= (s.n_positions or n))


# --- parameters ----------------------------------------------------------------------------------------


def attention_matrices(s: Sizes) -> int:
    """Numbers in one layer's projections: W_q, W_k, W_v and W_o, or their low-rank factors."""
    d, h = s.d_model, s.n_heads
    if s.latent is None:
        return d * s.d_head * (h + s.n_kv_heads) + d * s.d_value * (s.n_kv_heads + h)
    z = s.latent
    q = d * z.q_rank + z.q_rank * h * s.d_head if z.q_rank else d * h * s.d_head
    return q + d * (z.kv_rank + z.d_rope) + z.kv_rank * h * (z.d_nope + s.d_value) + h * s.d_value * d


def attention_extras(s: Sizes) -> int:
    """Numbers of one layer's attention that multiply nothing wide: biases, norms of q and k, sinks."""
    q, k, v = s.n_heads * s.d_head, s.n_kv_heads * s.d_head, s.n_kv_heads * s.d_value
    norms = {"": 0, "head": 2 * s.d_head, "full": q + k}[s.qk_norm]
    latents = s.latent.q_rank + s.latent.kv_rank if s.latent else 0
    biases = (q + k + v) * s.qkv_bias + s.d_model * s.o_bias
    return biases + norms + latents + s.n_heads * s.sinks


def ffn_biases(s: Sizes, d_ff: int) -> int:
    return ((s.ffn_matrices - 1) * d_ff + s.d_model) * s.ffn_bias


def parameters(s: Sizes, active: bool = False) -> dict[str, int]:
    """Parameters by part; with active, those that one token meets (top_k experts, everything else whole)."""
    n_sparse, n_dense = s.kinds[True], s.kinds[False]
    one = s.ffn_matrices * s.d_model
    found = {
        "attention": s.n_layers * attention_matrices(s),
        "feed-forward": n_dense * one * s.d_ff,
        "experts": 0,
        "routers": 0,
        "norms and biases": s.n_layers
        * (attention_extras(s) + s.norms_per_block * s.norm_numbers * s.d_model)
        + n_dense * ffn_biases(s, s.d_ff)
        + s.norm_numbers * s.d_model * (1 + s.embedding_norm)
        + s.n_vocab * s.head_bias,
        "embedding": (s.n_vocab + s.n_positions) * s.d_model,
        "output table": 0 if s.tied else s.n_vocab * s.d_model,
    }
    if s.experts:
        e = s.experts
        n = e.top_k if active else e.n
        shared = one * e.d_ff_shared + s.d_model * e.shared_gate
        found["experts"] = n_sparse * (n * one * e.d_ff + shared)
        found["routers"] = n_sparse * e.n * (s.d_model + e.router_bias)
        found["norms and biases"] += n_sparse * n * ffn_biases(s, e.d_ff)
    return found


def n_parameters(s: Sizes, active: bool = False) -> int:
    return sum(parameters(s, active).values())


def matmul_parameters(s: Sizes) -> int:
    """The active numbers that multiply a token: no embedding rows, no norms, no biases."""
    found = parameters(s, active=True)
    routers = s.kinds[True] * s.experts.n * s.d_model if s.experts else 0
    head = s.n_vocab * s.d_model
    return found["attention"] + found["feed-forward"] + found["experts"] + routers + head


def skeleton(s: Sizes, layer: int) -> dict[str, Tensor]:
    """One block's tensors on "meta", under Hugging Face's names where they have one; experts are stacked."""

    def new(*shape: int) -> Tensor:
        return torch.empty(shape, device="meta")

    d, q, k, v = s.d_model, s.n_heads * s.d_head, s.n_kv_heads * s.d_head, s.n_kv_heads * s.d_value
    made = {"o_proj.weight": new(d, s.n_heads * s.d_value)}
    if s.latent is None:
        made |= {"q_proj.weight": new(q, d), "k_proj.weight": new(k, d), "v_proj.weight": new(v, d)}
    else:
        z = s.latent
        made |= {
            "kv_a_proj_with_mqa.weight": new(z.kv_rank + z.d_rope, d),
            "kv_a_layernorm.weight": new(z.kv_rank),
            "kv_b_proj.weight": new(s.n_heads * (z.d_nope + s.d_value), z.kv_rank),
        }
        if z.q_rank:
            made |= {"q_a_proj.weight": new(z.q_rank, d), "q_a_layernorm.weight": new(z.q_rank)}
        made["q_b_proj.weight"] = new(q, z.q_rank or d)
    made |= {f"{name}_proj.bias": new(n) for name, n in (("q", q), ("k", k), ("v", v)) if s.qkv_bias}
    made |= {"o_proj.bias": new(d)} if s.o_bias else {}
    widths = {"": (), "head": (s.d_head, s.d_head), "full": (q, k)}[s.qk_norm]
    made |= {f"{name}_norm.weight": new(n) for name, n in zip("qk", widths, strict=False)}
    made |= {"sinks": new(s.n_heads)} if s.sinks else {}
    for i in range(s.norms_per_block):
        made |= {f"norm{i}.{part}": new(d) for part in ("weight", "bias")[: s.norm_numbers]}
    if not (s.experts and s.sparse[layer]):
        return made | ffn_skeleton(s, (), s.d_ff, "mlp")
    e = s.experts
    made |= ffn_skeleton(s, (e.n,), e.d_ff, "mlp.experts") | {"mlp.gate.weight": new(e.n, d)}
    made |= {"mlp.gate.bias": new(e.n)} if e.router_bias else {}
    if e.d_ff_shared:
        made |= ffn_skeleton(s, (), e.d_ff_shared, "mlp.shared_expert", biases=False)
    return made | ({"mlp.shared_expert_gate.weight": new(1, d)} if e.shared_gate else {})


def ffn_skeleton(
    s: Sizes, stack: tuple[int, ...], d_ff: int, name: str, biases: bool = True
) -> dict[str, Tensor]:
    """A feed-forward's tensors, or those of a stack of experts."""
    made = {}
    for matrix in ("up_proj", "down_proj", "gate_proj")[: s.ffn_matrices]:
        rows, columns = (s.d_model, d_ff) if matrix == "down_proj" else (d_ff, s.d_model)
        made[f"{name}.{matrix}.weight"] = torch.empty(*stack, rows, columns, device="meta")
        if s.ffn_bias and biases:
            made[f"{name}.{matrix}.bias"] = torch.empty(*stack, rows, device="meta")
    return made


# --- FLOPs ---------------------------------------------------------------------------------------------


def pairs(n: int, window: int) -> int:
    """Pairs of a query and a key that it sees: the causal triangle of n tokens, or its band."""
    w = min(n, window or n)
    return w * (w + 1) // 2 + (n - w) * w


def prefill_flops(s: Sizes, n: int, causal: bool = True) -> int:
    """One pass over n tokens; with causal only what is seen is scored, otherwise the whole square."""
    a_pair = 2 * s.n_heads * (s.d_head + s.d_value)
    seen = sum(k * (pairs(n, w) if causal else n * n) for w, k in s.reach.items())
    return 2 * matmul_parameters(s) * n + a_pair * seen


def decode_flops(s: Sizes, n: int) -> int:
    """One more token, the n-th. With latents the projections are absorbed, and scores read the latents."""
    z = s.latent
    a_pair = 2 * s.n_heads * (2 * z.kv_rank + z.d_rope if z else s.d_head + s.d_value)
    return 2 * matmul_parameters(s) + a_pair * sum(k * min(n, w or n) for w, k in s.reach.items())


# --- bytes ---------------------------------------------------------------------------------------------


def cached_numbers(s: Sizes) -> int:
    """Numbers that one layer caches for one token: a key and a value for each head, or one latent."""
    return s.latent.kv_rank + s.latent.d_rope if s.latent else s.n_kv_heads * (s.d_head + s.d_value)


def cache_bytes(s: Sizes, n: int, bytes_per_number: int = 2, windowed: bool = True) -> int:
    """The cache of n tokens; windowed, a layer with a window holds no more tokens than it sees."""
    held = sum(k * (min(n, w) if w and windowed else n) for w, k in s.reach.items())
    return held * cached_numbers(s) * bytes_per_number


def step_bytes(s: Sizes, n: int, bytes_per_number: int = 2) -> int:
    """What one decode step of one sequence reads: each active matrix once, and the cache of n tokens."""
    return matmul_parameters(s) * bytes_per_number + cache_bytes(s, n, bytes_per_number)


# --- the reference -------------------------------------------------------------------------------------


def beyond(s: Sizes) -> list[str]:
    """What the model has and the reference has not, of all that is counted."""
    had: Mapping[str, object] = {
        "experts": s.experts,
        "latents": s.latent,
        "sliding windows": any(s.windows),
        "a feed-forward of two matrices": s.ffn_matrices != 3,
        "biases": s.qkv_bias or s.o_bias or s.ffn_bias or s.head_bias,
        "norms of q and k": s.qk_norm,
        "sinks": s.sinks,
        "other norms": (s.norm_numbers, s.norms_per_block) != (1, 2) or s.embedding_norm,
        "learned positions": s.n_positions,
        "an odd d_head": s.d_head % 2,
    }
    return [what for what, there in had.items() if there]


def as_reference(s: Sizes) -> ModelConfig:
    """The same sizes for a Transformer. Raises "not offered" for what the interface has not."""
    if beyond(s):
        raise NotImplementedError(f"not offered: {s.name} has {', '.join(beyond(s))}, beyond the interface")
    return ModelConfig(
        n_vocab=s.n_vocab, d_model=s.d_model, n_layers=s.n_layers, n_heads=s.n_heads,
        n_kv_heads=s.n_kv_heads, d_head=s.d_head, d_ff=s.d_ff, tie_embeddings=s.tied,
    )  # fmt: skip
