"""What turns tests into verdicts. The spec's own vocabulary is imported from here."""

from harness import configs, formula, measure, probe, sizes
from harness.budget import agrees, bound
from harness.checks import at_least, at_most, between, close, gradients, same
from harness.claims import claim
from harness.inputs import SMALL, Draw
from harness.receipts import Table, noise

__all__ = [
    "SMALL", "Draw", "Table", "agrees", "at_least", "at_most", "between", "bound", "claim", "close",
    "configs", "formula", "gradients", "measure", "noise", "probe", "same", "sizes",
]  # fmt: skip
