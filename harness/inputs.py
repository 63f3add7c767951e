"""Drawn inputs: the same numbers for every implementation, device and dtype."""

import hashlib
import math
from typing import Any

import torch
from torch import Tensor

from refimpl.config import ModelConfig

# No two counts coincide: 6 query heads over 2 key/value heads make groups of 3, and 6 * 8 != 42.
SMALL = ModelConfig(n_vocab=61, d_model=42, n_layers=2, n_heads=6, n_kv_heads=2, d_head=8, d_ff=56)


# What was drawn, in order: how it was asked for, the numbers, and the generator's state afterwards.
Tape = list[tuple[Any, Tensor, Tensor]]


class Draw:
    """Random tensors from a generator seeded by a text (the claim and its case) and a number.

    Numbers are drawn on the CPU in float64, cast, and then moved: two steps, in this order, since MPS
    has no float64. Implementations that share a tape share the drawing, as long as they ask for the same.
    """

    def __init__(
        self,
        text: str,
        seed: int,
        device: Any = "cpu",
        dtype: torch.dtype = torch.float32,
        tape: Tape | None = None,
    ):
        self.text, self.device, self.dtype = text, device, dtype
        self.restart(seed, tape)

    def restart(self, seed: int, tape: Tape | None = None) -> None:
        self.seed, self.tape, self.drawn = seed, [] if tape is None else tape, 0
        digest = hashlib.sha256(f"{self.text}|{seed}".encode()).digest()
        self.generator = torch.Generator().manual_seed(int.from_bytes(digest[:8], "big") >> 1)

    def numbers(self, draw: Any, *args: Any, **options: Any) -> Tensor:
        """The next numbers, as a torch function draws them, on the CPU: off the tape where they are there."""
        asked, i = (draw, args), self.drawn
        self.drawn += 1
        if i == len(self.tape) or self.tape[i][0] != asked:
            del self.tape[i:]
            if i:
                self.generator.set_state(self.tape[-1][2])
            made = draw(*args, generator=self.generator, **options)
            self.tape.append((asked, made, self.generator.get_state()))
        return self.tape[i][1].clone()

    def of(self, text: str) -> "Draw":
        """The inputs of another claim, by its id."""
        return Draw(text, self.seed, self.device, self.dtype)

    def place(self, x: Tensor) -> Tensor:
        return x.to(self.dtype).to(self.device) if x.is_floating_point() else x.to(self.device)

    def __call__(self, *shape: int) -> Tensor:
        """Standard normal."""
        return self.place(self.numbers(torch.randn, shape, dtype=torch.float64))

    def uniform(self, low: float, high: float, *shape: int) -> Tensor:
        unit = self.numbers(torch.rand, shape, dtype=torch.float64)
        return self.place(low + (high - low) * unit)

    def gains(self, width: int) -> Tensor:
        """A norm's gains: sizes of 0.5 to 1.5, and every third one negative, as trained ones may be."""
        signs = 1.0 - 2.0 * (torch.arange(width) % 3 == 1).to(torch.float64)
        return self.uniform(0.5, 1.5, width) * self.place(signs)

    def tokens(self, n_vocab: int, *shape: int) -> Tensor:
        return self.place(self.numbers(torch.randint, n_vocab, shape))

    def shuffle(self, n: int) -> Tensor:
        """A permutation of range(n) other than the identity."""
        order = torch.arange(n)
        while n > 1 and torch.equal(order, torch.arange(n)):
            order = self.numbers(torch.randperm, n)
        return order.to(self.device)

    def weights(self, config: ModelConfig) -> dict[str, Tensor]:
        """A state dict under Hugging Face Llama's names: matrices that keep an input's size, gains of
        size 0.5 to 1.5 and of both signs (gains of 1 would hide a norm in the wrong place), embeddings of
        size 1."""
        d, q, kv = config.d_model, config.n_heads * config.d_head, config.n_kv_heads * config.d_head

        def matrix(d_out: int, d_in: int) -> Tensor:
            return self(d_out, d_in) / math.sqrt(d_in)

        found = {"model.embed_tokens.weight": self(config.n_vocab, d)}
        for i in range(config.n_layers):
            layer = {
                "input_layernorm": self.gains(d),
                "self_attn.q_proj": matrix(q, d),
                "self_attn.k_proj": matrix(kv, d),
                "self_attn.v_proj": matrix(kv, d),
                "self_attn.o_proj": matrix(d, q),
                "post_attention_layernorm": self.gains(d),
                "mlp.gate_proj": matrix(config.d_ff, d),
                "mlp.up_proj": matrix(config.d_ff, d),
                "mlp.down_proj": matrix(d, config.d_ff),
            }
            found |= {f"model.layers.{i}.{name}.weight": w for name, w in layer.items()}
        found["model.norm.weight"] = self.gains(d)
        found["lm_head.weight"] = (
            found["model.embed_tokens.weight"] if config.tie_embeddings else matrix(config.n_vocab, d)
        )
        return found
