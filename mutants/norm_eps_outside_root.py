"""Adds eps to the root mean square instead of under the root.

Where: allenai/OLMo issue 281; tile-ai/tilelang PR 1243; NVIDIA/TransformerEngine PR 364. Unit rows agree.
"""

from mutants.parts import widen

MUST_BREAK = ("norm.eps-is-added-under-the-root",)
SPREADS = ("contract",)


def rms_norm(x, weight, *, eps=1e-6):
    wide = widen(x)
    size = wide.square().mean(dim=-1, keepdim=True).sqrt()
    return (wide / (size + eps) * widen(weight)).to(x.dtype)
