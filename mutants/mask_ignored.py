"""Ignores causal: two ways of asking for a mask each rely on the other.

Training loss is suspiciously low. Seen: facebookresearch/xformers 103, 1135;
huggingface/transformers PR 30652.
"""

from mutants.parts import mix, scores

MUST_BREAK = (
    "causal.mask-matrix",
    "causal.never-sees-the-next",
    "causal.probe",
    "training.one-pass-is-n-passes",
    "causal.mask-brings-order",
)
SPREADS = ("attention", "contract", "generation", "gqa")


def attention(q, k, v, *, causal=False, scale=None):
    return mix(scores(q, k, scale), q, v)
