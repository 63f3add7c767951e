"""Accelerators as their maker describes them, and what follows by division: rooflines and room."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Card:
    """memory in bytes, bandwidth in bytes/s, compute in dense BF16 FLOP/s; all decimal, all nominal."""

    name: str
    variant: str
    memory: float
    bandwidth: float
    compute: float
    source: str

    @property
    def ridge(self) -> float:
        """FLOPs a byte moved must pay for, before compute is what binds."""
        return self.compute / self.bandwidth


A100 = Card("A100 80GB", "SXM", 80e9, 2.039e12, 312e12, "NVIDIA A100 80GB datasheet, 2021")
A100_PCIE = Card("A100 80GB", "PCIe", 80e9, 1.935e12, 312e12, "NVIDIA A100 80GB datasheet, 2021")
H100 = Card("H100 80GB", "SXM", 80e9, 3.35e12, 989.4e12, "NVIDIA H100 architecture white paper, 2022")
H100_PCIE = Card("H100 80GB", "PCIe", 80e9, 2.0e12, 756e12, "NVIDIA H100 PCIe datasheet, 2022")
H200 = Card("H200 141GB", "SXM", 141e9, 4.8e12, 989.4e12, "NVIDIA H200 datasheet, 2024")
CARDS = (A100, A100_PCIE, H100, H100_PCIE)

# What is left of 80 GB after the CUDA context, workspaces and fragmentation, as the refresher budgets it,
# and the 3 GB that its table takes off once more without saying so.
USABLE = 77e9
HIDDEN_ALLOWANCE = 3e9


def seconds(card: Card, flops: float, n_bytes: float) -> float:
    """The floor under a kernel's time: the slower of arithmetic and traffic (Williams et al. 2009)."""
    return max(flops / card.compute, n_bytes / card.bandwidth)


def sequences(room: float, bytes_per_token: int, n_tokens: int) -> int:
    """Whole sequences of n_tokens whose caches fit in this many bytes."""
    return int(room // (bytes_per_token * n_tokens))
