"""torch.nn.TransformerEncoder as a decoder-only model: pre-norm layers under a causal mask given as a mask.

The mask is Transformer.generate_square_subsequent_mask's; embedding and head are this adapter's. By design it
is another model: LayerNorm, a ReLU network of two matrices, no positions, no shared key/value heads, heads of
d_model / n_heads, no cache. Of Llama's weights it takes what fits: the first d_head rows of each head, each
key/value head repeated, gate_proj and down_proj; its biases are set to 0. float64 is float64 inside.
"""

import torch
from torch import nn

DIFFERS = {
    "norm": "LayerNorm",
    "block": "LayerNorm, and a network of two matrices",
    "ffn": "ReLU, and two matrices",
    "rope": "no positions",
    "context": "no positions",
    "gqa": "every head has its own keys and values",
    "bytes": "its parameters are others",
    "cost": "its parameters are others",
    "serving": "no cache",
    "lm-head": "LayerNorm before the head",
}
BY_DESIGN = {"kind": "convention", "reason": "a ReLU network of two matrices, no shared key/value heads"}
KNOWN_BREAKS = [
    {"claim": "training.six-per-matmul-weight", **BY_DESIGN},
    {
        "claim": "heads.disjoint-without-w-o",
        "kind": "convention",
        "reason": "heads are d_model / n_heads wide, so that W_o is no identity at another d_head",
    },
    {
        "claim": "heads.width-is-free",
        "kind": "convention",
        "reason": "heads are d_model / n_heads wide: another d_head is not heard",
    },
]


class Transformer(nn.Module):
    hint_only = False

    def __init__(self, c, *, device, dtype):
        super().__init__()
        place = {"device": device, "dtype": dtype}
        layer = nn.TransformerEncoderLayer(
            c.d_model, c.n_heads, c.d_ff, 0.0, norm_first=True, batch_first=True, **place
        )
        self.config, norm = c, nn.LayerNorm(c.d_model, **place)
        self.embed = nn.Embedding(c.n_vocab, c.d_model, **place)
        self.encoder = nn.TransformerEncoder(layer, c.n_layers, norm, enable_nested_tensor=False).eval()
        self.head = nn.Linear(c.d_model, c.n_vocab, bias=False, **place)
        if c.tie_embeddings:
            self.head.weight = self.embed.weight

    def forward(self, tokens, cache=None):
        x, mask = self.embed(tokens), None
        if not self.hint_only:
            mask = nn.Transformer.generate_square_subsequent_mask(x.shape[1], x.device, x.dtype)
        return self.head(self.encoder(x, mask, is_causal=True))

    def new_cache(self):
        raise NotImplementedError("not offered: nn.TransformerEncoder has no cache")

    def load_state_dict(self, weights):
        c, state = self.config, {n: torch.zeros_like(p) for n, p in self.named_parameters() if "bias" in n}
        d_head = c.d_model // c.n_heads

        def heads(name, i):
            w = weights[f"model.layers.{i}.self_attn.{name}.weight"]
            w = (w.mT if name == "o_proj" else w).unflatten(0, (-1, c.d_head))[:, :d_head]
            return w.repeat_interleave(c.n_heads // len(w), dim=0).flatten(0, 1)

        for i in range(c.n_layers):
            to, of = f"encoder.layers.{i}.", f"model.layers.{i}."
            state |= {
                to + "self_attn.in_proj_weight": torch.cat(
                    [heads(n, i) for n in ("q_proj", "k_proj", "v_proj")]
                ),
                to + "self_attn.out_proj.weight": heads("o_proj", i).mT,
                to + "linear1.weight": weights[of + "mlp.gate_proj.weight"],
                to + "linear2.weight": weights[of + "mlp.down_proj.weight"],
                to + "norm1.weight": weights[of + "input_layernorm.weight"],
                to + "norm2.weight": weights[of + "post_attention_layernorm.weight"],
            }
        state["embed.weight"] = weights["model.embed_tokens.weight"]
        state["encoder.norm.weight"] = weights["model.norm.weight"]
        state["head.weight"] = weights["lm_head.weight"]
        return super().load_state_dict(state)
