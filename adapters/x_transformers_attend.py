"""x-transformers' functions.

attention: Attend, with its own end-aligned mask; it reads key/value head h % n_kv_heads, so query heads are
put in that order here, and back. rope: RotaryEmbedding and apply_rotary_pos_emb, adjacent pairs. rms_norm:
RMSNorm, which takes no eps. feed_forward: FeedForward with GLU, whose bias is set to 0. Softmax is float32
inside, and so are RoPE's tables, so that float64 is not declared.
"""

import torch
from x_transformers.attend import Attend
from x_transformers.x_transformers import FeedForward, RMSNorm, RotaryEmbedding, apply_rotary_pos_emb

DTYPES = ("float32", "bfloat16", "float16")

FLOAT16_SCORES = {
    "claim": "scale.applies-before-float16-overflows",
    "dtype": "float16",
    "kind": "limit",
    "reason": "Attend multiplies q and k in float16, and scales the product afterwards",
}
NO_EPS = {"kind": "limit", "reason": "RMSNorm takes no eps"}
NAN = {
    "dtype": "float16",
    "kind": "defect",
    "reason": "RMSNorm makes NaN of a row of zeros: F.normalize's eps of 1e-12 is 0 in float16",
}
KNOWN_BREAKS = [
    FLOAT16_SCORES,
    {
        "claim": "norm.squares-fit-float16",
        "dtype": "float16",
        "kind": "limit",
        "reason": "RMSNorm takes the length of a row, sqrt(d) times its size, in float16",
    },
    {"claim": "norm.zero-stays-zero", **NAN},
    {"claim": "contract.norm-is-finite", **NAN},
    {"claim": "norm.eps-is-added-under-the-root", **NO_EPS},
    {"claim": "contract.norm-passes-gradients", "dtype": "float32", **NO_EPS},
]


def by_remainder(x, n_kv_heads, dim):
    """Heads 0, 1, 2, ... in groups -> the order in which head h belongs to group h % n_kv_heads."""
    return x.unflatten(dim, (n_kv_heads, -1)).transpose(dim, dim + 1).flatten(dim, dim + 1)


def attention(q, k, v, *, causal=False, scale=None):
    n_heads, n_kv_heads = q.shape[1], k.shape[1]
    out = Attend(causal=causal, scale=scale)(by_remainder(q, n_kv_heads, 1), k, v)[0]
    return by_remainder(out, n_heads // n_kv_heads, 1)


def turning(d_head, base):
    if d_head == 2:
        raise NotImplementedError("not offered: RotaryEmbedding divides by d_head - 2")
    return RotaryEmbedding(d_head, base=base)


def rope(x, positions, *, base=10000.0):
    return apply_rotary_pos_emb(x, turning(x.shape[-1], base).to(x.device)(positions)[0])


def rms_norm(x, weight, *, eps=1e-6):
    return torch.func.functional_call(RMSNorm(len(weight)), {"g": weight}, (x,))


def feed_forward(x, w_gate, w_up, w_down):
    d_model, d_ff = w_gate.shape
    ff = FeedForward(d_model, mult=(d_ff + 0.5) / d_model, glu=True, swish=True, no_bias=True)
    weights = {"ff.0.proj.weight": torch.cat((w_up, w_gate), dim=1).mT, "ff.2.weight": w_down.mT}
    return torch.func.functional_call(ff, weights | {"ff.0.proj.bias": x.new_zeros(2 * d_ff)}, (x,))
