"""The decoder: embedding, blocks of two corrections each, a final norm, and scores for every token."""

from collections.abc import Callable, Mapping
from typing import Any

import torch
from torch import Tensor, nn

from refimpl.attention import attention
from refimpl.config import ModelConfig
from refimpl.ffn import feed_forward
from refimpl.norm import rms_norm
from refimpl.rope import rope


class Cache:
    """The keys and values of the tokens seen so far, for each layer (batch, n_kv_heads, n, d_head)."""

    def __init__(self, n_layers: int) -> None:
        self.layers: list[tuple[Tensor, Tensor] | None] = [None] * n_layers

    @property
    def n_tokens(self) -> int:
        return 0 if self.layers[0] is None else self.layers[0][0].shape[-2]

    @property
    def nbytes(self) -> int:
        """Bytes held by the keys and values."""
        return sum(t.nbytes for layer in self.layers if layer is not None for t in layer)

    def extend(self, i: int, k: Tensor, v: Tensor) -> tuple[Tensor, Tensor]:
        """Append layer i's new keys and values; return all of them."""
        past = self.layers[i]
        if past is not None:
            k, v = torch.cat((past[0], k), dim=-2), torch.cat((past[1], v), dim=-2)
        self.layers[i] = (k, v)
        return k, v


class Transformer(nn.Module):
    """A decoder-only language model, with Hugging Face Llama's names for its weights.

    model(tokens, cache=None): tokens (batch, n) int64 -> logits (batch, n, n_vocab); a cache is
    extended in place and positions continue from it. The four functions that the blocks are made of
    are arguments, so that another implementation of any of them can be judged inside a whole model.
    """

    def __init__(
        self,
        config: ModelConfig,
        *,
        device: torch.device | str = "cpu",
        dtype: torch.dtype = torch.float32,
        attention: Callable[..., Tensor] = attention,
        rope: Callable[..., Tensor] = rope,
        rms_norm: Callable[..., Tensor] = rms_norm,
        feed_forward: Callable[..., Tensor] = feed_forward,
    ) -> None:
        super().__init__()
        self.config = config
        self.attention, self.rope = attention, rope
        self.rms_norm, self.feed_forward = rms_norm, feed_forward
        place: dict[str, Any] = {"device": device, "dtype": dtype}
        self.model = nn.ModuleDict(
            {
                "embed_tokens": nn.Embedding(config.n_vocab, config.d_model, **place),
                "layers": nn.ModuleList(block(config, place) for _ in range(config.n_layers)),
                "norm": Gain(config.d_model, place),
            }
        )
        self.lm_head = linear(config.d_model, config.n_vocab, place)
        if config.tie_embeddings:
            self.lm_head.weight = self.model["embed_tokens"].weight  # type: ignore[assignment]

    def new_cache(self) -> Cache:
        return Cache(self.config.n_layers)

    def load_state_dict(
        self, state_dict: Mapping[str, Any], strict: bool = True, assign: bool = False
    ) -> Any:
        """Weights under Hugging Face Llama's names; a tied checkpoint may leave lm_head.weight out."""
        if self.config.tie_embeddings:
            state_dict = {"lm_head.weight": state_dict["model.embed_tokens.weight"], **state_dict}
        return super().load_state_dict(state_dict, strict, assign)

    def forward(self, tokens: Tensor, cache: Cache | None = None) -> Tensor:
        start = cache.n_tokens if cache is not None else 0
        positions = torch.arange(start, start + tokens.shape[-1], device=tokens.device)
        layers: Any = self.model["layers"]
        x = self.model["embed_tokens"](tokens)  # (batch, n, d_model)
        for i, layer in enumerate(layers):
            x = x + self.attend(layer, self.norm(layer["input_layernorm"], x), positions, cache, i)
            x = x + self.feed(layer["mlp"], self.norm(layer["post_attention_layernorm"], x))
        return self.lm_head(self.norm(self.model["norm"], x))  # (batch, n, n_vocab)

    def attend(self, layer: Any, x: Tensor, positions: Tensor, cache: Cache | None, i: int) -> Tensor:
        """Read other tokens: (batch, n, d_model) -> (batch, n, d_model)."""
        w, base = layer["self_attn"], self.config.rope_base
        q = split(w["q_proj"](x), self.config.n_heads)  # (batch, n_heads, n, d_head)
        k = split(w["k_proj"](x), self.config.n_kv_heads)  # (batch, n_kv_heads, n, d_head)
        v = split(w["v_proj"](x), self.config.n_kv_heads)
        q, k = self.rope(q, positions, base=base), self.rope(k, positions, base=base)
        if cache is not None:
            k, v = cache.extend(i, k, v)
        out = self.attention(q, k, v, causal=True, scale=self.config.d_head**-0.5)
        return w["o_proj"](merge(out))

    def feed(self, w: Any, x: Tensor) -> Tensor:
        """Transform each token alone: (batch, n, d_model) -> (batch, n, d_model)."""
        gate, up, down = w["gate_proj"].weight, w["up_proj"].weight, w["down_proj"].weight
        return self.feed_forward(x, gate.mT, up.mT, down.mT)

    def norm(self, gain: Any, x: Tensor) -> Tensor:
        return self.rms_norm(x, gain.weight, eps=self.config.norm_eps)


def split(x: Tensor, n_heads: int) -> Tensor:
    """(batch, n, n_heads * d_head) -> (batch, n_heads, n, d_head)."""
    return x.unflatten(-1, (n_heads, -1)).transpose(1, 2)


def merge(x: Tensor) -> Tensor:
    """(batch, n_heads, n, d_head) -> (batch, n, n_heads * d_head)."""
    return x.transpose(1, 2).flatten(-2)


class Gain(nn.Module):
    """RMSNorm's learned gain, one number a dimension."""

    def __init__(self, d: int, place: dict[str, Any]) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.ones(d, **place))


def linear(d_in: int, d_out: int, place: dict[str, Any]) -> nn.Linear:
    return nn.Linear(d_in, d_out, bias=False, **place)


def block(config: ModelConfig, place: dict[str, Any]) -> nn.ModuleDict:
    """The weights of one block."""
    d, q, kv = config.d_model, config.n_heads * config.d_head, config.n_kv_heads * config.d_head
    return nn.ModuleDict(
        {
            "input_layernorm": Gain(d, place),
            "self_attn": nn.ModuleDict(
                {
                    "q_proj": linear(d, q, place),
                    "k_proj": linear(d, kv, place),
                    "v_proj": linear(d, kv, place),
                    "o_proj": linear(q, d, place),
                }
            ),
            "post_attention_layernorm": Gain(d, place),
            "mlp": nn.ModuleDict(
                {
                    "gate_proj": linear(d, config.d_ff, place),
                    "up_proj": linear(d, config.d_ff, place),
                    "down_proj": linear(config.d_ff, d, place),
                }
            ),
        }
    )
