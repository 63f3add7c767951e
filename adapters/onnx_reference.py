"""ONNX operators, as the reference evaluator of the onnx package computes them with NumPy.

attention: Attention-24; its causal mask is the operator's, aligned at the end because all keys but the last
n_q come in as past_key. rope: RotaryEmbedding-23, with float64 angles made here, in tables of x's dtype.
rms_norm: RMSNormalization-23. feed_forward: Swish-24 between two MatMul each, composed here. Every operator
computes in its inputs' dtype. Attributes are float32, so that float64 is not declared; NumPy has no bfloat16.
"""

from functools import cache

import torch
from onnx import TensorProto, helper
from onnx.reference import ReferenceEvaluator

DTYPES = ("float32", "float16")
DEVICES = ("cpu",)
GRADIENTS = False
KNOWN_BREAKS = [
    {
        "claim": claim,
        "dtype": "float16",
        "kind": "defect",
        "versions": {"onnx": "<=1.23.2"},
        "reason": "RMSNormalization squares in float16 although stash_type is 1 (onnx #8439)",
    }
    for claim in (
        "norm.squares-fit-float16", "norm.output-has-unit-size", "norm.formula",
        "norm.eps-is-added-under-the-root",
    )
] + [
    {
        "claim": "attention.weighted-average",
        "dtype": "float16",
        "kind": "limit",
        "reason": "Attention's softmax_precision is by default that of its inputs, and NumPy's float16 here",
    }
]  # fmt: skip

TYPES = {"float32": TensorProto.FLOAT, "float16": TensorProto.FLOAT16, "int64": TensorProto.INT64,
         "int32": TensorProto.INT32}  # fmt: skip


@cache
def prepared(evaluator, op, types, n_out, domain, attributes):
    """A model of one operator, loaded; types holds an input's dtype, or None for one left out."""
    names = [f"in{i}" if kind else "" for i, kind in enumerate(types)]
    outputs = [f"out{i}" for i in range(n_out)]
    node = helper.make_node(op, names, outputs, domain=domain, **dict(attributes))
    values = [
        helper.make_tensor_value_info(n, TYPES[t], None) for n, t in zip(names, types, strict=True) if n
    ]
    results = [helper.make_tensor_value_info(name, TYPES[types[0]], None) for name in outputs]
    opsets = [helper.make_opsetid("", 24), helper.make_opsetid("com.microsoft", 1)]
    graph = helper.make_graph([node], op, values, results)
    return evaluator(helper.make_model(graph, opset_imports=opsets, ir_version=11))


def functions(evaluator):
    """The four functions, and `call`, on an evaluator that loads a model and has run(None, inputs)."""

    def call(op, *inputs, n_out=1, domain="", **attributes):
        arrays = [None if x is None else x.detach().contiguous().numpy() for x in inputs]
        types = tuple(None if x is None else str(x.dtype) for x in arrays)
        loaded = prepared(evaluator, op, types, n_out, domain, tuple(sorted(attributes.items())))
        feeds = {f"in{i}": x for i, x in enumerate(arrays) if x is not None}
        return torch.from_numpy(loaded.run(None, feeds)[0])

    def attention(q, k, v, *, causal=False, scale=None):
        if scale is not None and scale <= 0:
            raise NotImplementedError("not offered: the operator multiplies q and k by sqrt(scale)")
        given = {} if scale is None else {"scale": scale}
        n_past = k.shape[2] - q.shape[2]
        if not causal or not n_past:
            return call("Attention", q, k, v, is_causal=int(causal), **given)
        (pk, k), (pv, v) = (x.split((n_past, q.shape[2]), dim=2) for x in (k, v))
        return call("Attention", q, k, v, None, pk, pv, n_out=3, is_causal=1, **given)

    def rope(x, positions, *, base=10000.0):
        rates = base ** -(torch.arange(0, x.shape[-1], 2, dtype=torch.float64) / x.shape[-1])
        angles = (positions.to(torch.float64)[:, None] * rates).expand(len(x), -1, -1)  # (batch, n, d_head/2)
        return call("RotaryEmbedding", x, angles.cos().to(x.dtype), angles.sin().to(x.dtype), interleaved=0)

    def rms_norm(x, weight, *, eps=1e-6):
        return call("RMSNormalization", x, weight, axis=-1, epsilon=eps)

    def feed_forward(x, w_gate, w_up, w_down):
        return call("MatMul", call("Swish", call("MatMul", x, w_gate)) * call("MatMul", x, w_up), w_down)

    return call, attention, rope, rms_norm, feed_forward


_, attention, rope, rms_norm, feed_forward = functions(ReferenceEvaluator)
