"""Masks a chunk with tril over (new, cached + new), as if the cache were empty, and so hides the history.

Single steps need no mask and a prefill has no history, so both look right. Where: hyprstream/hyprstream
PR 1521, huggingface/candle PR 3743, TransformerLensOrg/TransformerLens PR 386.
"""

import torch

import refimpl
from mutants.parts import mix, scores

MUST_BREAK = ("generation.cached-equals-full",)


def attend(q, k, v, *, causal=False, scale=None):
    n_q, n_k = q.shape[-2], k.shape[-2]
    if n_q == 1:
        return refimpl.attention(q, k, v, scale=scale)
    seen = torch.ones(n_q, n_k, dtype=torch.bool, device=q.device).tril()
    return mix(scores(q, k, scale).masked_fill(~seen, -torch.inf), q, v)


class Transformer(refimpl.Transformer):
    def __init__(self, config, *, device, dtype):
        super().__init__(config, device=device, dtype=dtype, attention=attend)
