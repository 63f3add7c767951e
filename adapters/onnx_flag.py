"""ONNX's Attention-24 with its is_causal attribute alone: the whole key as one input, and no past_key.

Without a past the operator's mask is aligned at the first key: query i sees key j iff j <= i. Choose the
evaluator with --impl=adapters.onnx_flag:reference or --impl=adapters.onnx_flag:runtime.
"""

from types import SimpleNamespace

from onnx.reference import ReferenceEvaluator

from adapters.known import START_ALIGNED
from adapters.onnx_reference import DEVICES, DTYPES, functions

KNOWN_BREAKS = [
    {
        "claim": claim,
        "kind": "convention",
        "reason": "without a past, is_causal is aligned at the first key, as documented (onnx #8054)",
    }
    for claim in START_ALIGNED
]


def flagged(evaluator):
    call = functions(evaluator)[0]

    def attention(q, k, v, *, causal=False, scale=None):
        if scale is not None and scale <= 0:
            raise NotImplementedError("not offered: the operator multiplies q and k by sqrt(scale)")
        return call(
            "Attention", q, k, v, is_causal=int(causal), **({} if scale is None else {"scale": scale})
        )

    return SimpleNamespace(
        attention=attention, DEVICES=DEVICES, DTYPES=DTYPES, GRADIENTS=False, KNOWN_BREAKS=KNOWN_BREAKS,
        __doc__=__doc__,
    )  # fmt: skip


def __getattr__(name):
    if name == "reference":
        return flagged(ReferenceEvaluator)
    if name == "runtime":
        from adapters.onnx_runtime import session

        return flagged(session)
    raise AttributeError(f"adapters.onnx_flag has reference and runtime, not {name}")
