"""What several adapters say alike of their known breaks. Offers nothing itself."""

# What breaks where a causal mask is aligned at the first key. The interface aligns it at the last, since a
# cached step's queries are the newest tokens.
START_ALIGNED = (
    "causal.aligned-at-the-end", "causal.newest-sees-every-key", "causal.holds-in-16-bit",
    "causal.never-sees-the-next", "causal.past-keys-learn", "causal.row-is-attention-over-its-prefix",
    "causal.zero-however-low-the-scores", "generation.cached-equals-full",
    "generation.greedy-answer-is-one-token-a-trip", "generation.no-cache-is-an-empty-cache",
)  # fmt: skip


def breaks(kind, reason, *claims, **narrowed):
    """KNOWN_BREAKS entries for claims that break for one reason."""
    return [{"claim": claim, "kind": kind, "reason": reason, **narrowed} for claim in claims]
