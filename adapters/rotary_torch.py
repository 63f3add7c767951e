"""rotary-embedding-torch's RotaryEmbedding, with adjacent pairs and tables of its own.

rope: rotate_queries_or_keys, which makes the positions itself, in the vectors' dtype, from an offset: tokens
that do not follow each other are turned one by one. As in a model, one module serves all calls of one width
and base, and keeps the angles of its longest run from position 0. --impl=adapters.rotary_torch:by_freqs makes
the same tables by forward(), from float32 positions made here, and applies them with apply_rotary_emb.
"""

from functools import cache
from types import SimpleNamespace

import torch
from rotary_embedding_torch import RotaryEmbedding, apply_rotary_emb

BOTH = (
    "context.formula-everywhere", "context.fractions-turn-in-proportion", "context.window-anywhere",
    "rope.angle-proportional", "rope.neighbours-apart", "rope.offset-matters", "rope.relative-offset",
)  # fmt: skip
IN_FLOAT16 = (
    "context.ntk-base", "contract.rope-is-finite", "rope.base-sets-the-slowest", "rope.keeps-length",
    "rope.own-position",
)  # fmt: skip
KNOWN_BREAKS = [
    {
        "claim": claim,
        "dtype": (dtype,),
        "kind": "defect",
        "versions": {"rotary-embedding-torch": "<=0.9.1"},
        "reason": f"positions are made in {dtype}, which has not all whole numbers past {last}",
    }
    for claims, dtype, last in (
        ((*BOTH, "rope.angles-wider-than-16-bits"), "bfloat16", 256),
        (BOTH + IN_FLOAT16, "float16", 2048),
    )
    for claim in claims
] + [
    {
        "claim": "contract.rope-forgets-16-bit-calls",
        "kind": "defect",
        "versions": {"rotary-embedding-torch": "<=0.9.1"},
        "reason": "the angles of a 16-bit call are kept, and serve later float32 calls",
    }
]


def module(d_head, base, device):
    if d_head == 2:
        raise NotImplementedError("not offered: RotaryEmbedding divides by d_head - 2")
    return RotaryEmbedding(d_head, theta=base).to(device)


kept = cache(module)


def rope(x, positions, *, base=10000.0):
    turn, at = kept(x.shape[-1], base, x.device).rotate_queries_or_keys, positions.tolist()
    if at == list(range(int(at[0]), int(at[0]) + len(at))):
        return turn(x, offset=at[0])
    return torch.cat([turn(row, offset=p) for row, p in zip(x.split(1, dim=2), at, strict=True)], dim=2)


def rope_by_freqs(x, positions, *, base=10000.0):
    return apply_rotary_emb(module(x.shape[-1], base, x.device)(positions.to(torch.float32)), x)


by_freqs = SimpleNamespace(rope=rope_by_freqs, __doc__=__doc__)
