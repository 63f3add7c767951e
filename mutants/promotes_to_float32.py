"""Answers in float32 whatever dtype came in.

Where: huggingface/pytorch-image-models PR 2794; NVIDIA/Megatron-LM 643; huggingface/transformers PR 24262
(float32 tables multiplied in without a cast back). Comparisons of values pass.
"""

import refimpl

MUST_BREAK = (
    "contract.attention-answers-in-kind",
    "contract.rope-answers-in-kind",
    "contract.norm-answers-in-kind",
    "contract.ffn-answers-in-kind",
    "contract.model-answers-in-kind",
)


def widening(f):
    return lambda *inputs, **options: f(*inputs, **options).float()


attention, rope = widening(refimpl.attention), widening(refimpl.rope)
rms_norm, feed_forward = widening(refimpl.rms_norm), widening(refimpl.feed_forward)


class Transformer(refimpl.Transformer):
    def forward(self, tokens, cache=None):
        return super().forward(tokens, cache).float()
