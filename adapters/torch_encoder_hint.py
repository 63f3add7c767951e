"""torch.nn.TransformerEncoder told is_causal=True and given no mask, otherwise as adapters.torch_encoder."""

from adapters import torch_encoder
from adapters.torch_encoder import DIFFERS

__all__ = ["DIFFERS", "Transformer"]

KNOWN_BREAKS = [one for one in torch_encoder.KNOWN_BREAKS if one["claim"] == "heads.disjoint-without-w-o"] + [
    {"claim": claim, "kind": "defect", "reason": f"is_causal is a hint: {what} (pytorch #96941, #97214)"}
    for what, claims in (
        (
            "without gradients the fused path attends to the future, silently",
            (
                "causal.probe", "training.one-pass-is-n-passes",
                "generation.greedy-answer-is-one-token-a-trip",
            ),
        ),
        (
            "with gradients it asks for the mask",
            (
                "contract.model-passes-gradients", "generation.reads-all-earlier-tokens",
                "training.every-weight-gets-its-gradient", "training.message-comes-from-behind",
                "training.optimizer-keeps-two-per-weight", "training.single-loss",
                "training.what-runs-in-parallel",
            ),
        ),
    )
    for claim in claims
]  # fmt: skip


class Transformer(torch_encoder.Transformer):
    hint_only = True
