"""Takes the scale argument and ignores it.

Where: tenstorrent/tt-metal issue 33304. Passing the default's own value shows nothing.
"""

from mutants.parts import hide, mix, scores

MUST_BREAK = (
    "scale.argument-multiplies-scores",
    "scale.temperature",
    "scale.entropy-collapses-without",
    "scale.root-and-no-other-rule",
    "scale.keeps-the-gradient",
    "scale.typical-gradient-vanishes-without",
)
SPREADS = ("attention", "causal", "contract", "gqa")


def attention(q, k, v, *, causal=False, scale=None):
    return mix(hide(scores(q, k, None), causal), q, v)
