"""ONNX Runtime's own attention operators (domain com.microsoft), on its CPU provider.

Choose --impl=adapters.onnx_runtime_contrib:gqa, GroupQueryAttention, which is always causal, aligned at the
end by the lengths it is given, and takes one text at a time for several new tokens over a past; or :mha,
MultiHeadAttention, whose unidirectional mask is judged, with key/value heads repeated here. Attributes are
float32.
"""

from types import SimpleNamespace

import torch

from adapters.known import START_ALIGNED
from adapters.onnx_reference import DEVICES
from adapters.onnx_runtime import call

MASKED = [
    {
        "claim": claim,
        "kind": "defect",
        "reason": "unidirectional, n_q < n_k and no past: row i sees i + 1 keys, the last row all",
    }
    for claim in START_ALIGNED
    if claim != "generation.greedy-answer-is-one-token-a-trip"  # one query a pass, which sees all
]
ZERO = {
    "claim": "scale.argument-multiplies-scores",
    "kind": "limit",
    "reason": "a scale of 0 stands for the default, 1/sqrt(d_k)",
}


def packed(x):
    return x.transpose(1, 2).flatten(2)  # (batch, n, n_heads * d)


def unpacked(out, n_heads):
    return out.unflatten(-1, (n_heads, -1)).transpose(1, 2)


def group_query_attention(q, k, v, *, causal=False, scale=None):
    n_q, n_k = q.shape[2], k.shape[2]
    if not causal and n_q > 1:
        raise NotImplementedError("not offered: GroupQueryAttention is always causal")
    if v.shape[-1] != q.shape[-1] or q.shape[-1] % 8:
        raise NotImplementedError("not offered: GroupQueryAttention wants d_v = d_k, a multiple of 8")
    if 1 < n_q < n_k and len(q) > 1:
        rows = zip(*(x.split(1) for x in (q, k, v)), strict=True)
        return torch.cat([group_query_attention(*row, causal=causal, scale=scale) for row in rows])
    (pk, k), (pv, v) = (x.split((n_k - n_q, n_q), dim=2) for x in (k, v))
    lengths = torch.full((len(q),), n_k - 1, dtype=torch.int32), torch.tensor([n_k], dtype=torch.int32)
    given = {} if scale is None else {"scale": scale}
    inputs = (packed(q), packed(k), packed(v), pk, pv, *lengths)
    heads = {"num_heads": q.shape[1], "kv_num_heads": k.shape[1]}
    out = call("GroupQueryAttention", *inputs, n_out=3, domain="com.microsoft", **heads, **given)
    return unpacked(out, q.shape[1])


def multi_head_attention(q, k, v, *, causal=False, scale=None):
    k, v = (x.repeat_interleave(q.shape[1] // x.shape[1], dim=1) for x in (k, v))
    given = {} if scale is None else {"scale": scale}
    out = call(
        "MultiHeadAttention", packed(q), packed(k), packed(v), domain="com.microsoft",
        num_heads=q.shape[1], unidirectional=int(causal), **given,
    )  # fmt: skip
    return unpacked(out, q.shape[1])


def offered(attention, dtypes, known_breaks):
    return SimpleNamespace(
        attention=attention, DTYPES=dtypes, DEVICES=DEVICES, GRADIENTS=False, KNOWN_BREAKS=known_breaks,
        __doc__=__doc__,
    )  # fmt: skip


gqa = offered(group_query_attention, ("float32", "float16"), [])
mha = offered(multi_head_attention, ("float32",), [*MASKED, ZERO])
