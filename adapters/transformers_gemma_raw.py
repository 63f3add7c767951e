"""Hugging Face transformers' Gemma norm and feed-forward as they are: gains of 1 + w, and a GELU gate.

rms_norm: GemmaRMSNorm, given the weight as it is, which it adds 1 to. feed_forward: GemmaMLP with Gemma's own
gelu_pytorch_tanh: GeGLU in place of SwiGLU. Both are conventions of the model (huggingface/transformers
#29402); transformers_gemma translates them. The norm is float32 inside, so float64 is not declared.
"""

from adapters.transformers_gemma import raw_feed_forward as feed_forward  # noqa: F401
from adapters.transformers_gemma import raw_rms_norm as rms_norm  # noqa: F401

DTYPES = ("float32", "bfloat16", "float16")
GAIN = "Gemma's gain is 1 + w (huggingface/transformers #29402)"
GATE = "Gemma's gate is GELU by its tanh formula, not SiLU (Gemma report, 2024, §2)"
KNOWN_BREAKS = [
    {"claim": claim, "kind": "convention", "reason": reason}
    for reason, claims in (
        (GAIN, (
            "contract.norm-passes-gradients", "lm-head.final-norm",
            "norm.eps-is-added-under-the-root", "norm.formula", "norm.gain-per-dimension",
            "norm.given-eps-in-16-bits", "norm.keeps-the-mean", "norm.output-has-unit-size",
            "norm.squares-fit-float16", "norm.zero-stays-zero",
            "training.gradients-add-where-a-tensor-is-read-twice",
        )),
        (GATE, (
            "contract.ffn-passes-gradients", "ffn.formula",
            "ffn.gate-is-no-dimmer", "ffn.two-patterns-a-slot",
        )),
    )
    for claim in claims
]  # fmt: skip
