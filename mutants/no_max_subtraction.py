"""Takes exponentials of the scores as they are: past 88 float32 overflows.

Where: HabanaAI/vllm-fork issue 275 (a constant was subtracted); NVIDIA/DeepLearningExamples issue 169.
"""

from mutants.parts import hide, scores, spread

MUST_BREAK = ("scale.only-differences-matter",)
SPREADS = ("attention", "causal", "contract")


def attention(q, k, v, *, causal=False, scale=None):
    e = (hide(scores(q, k, scale), causal) - 10.0).exp()
    return (e / e.sum(-1, keepdim=True) @ spread(v, q)).to(q.dtype)
