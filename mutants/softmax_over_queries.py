"""Takes the softmax along the query axis: columns sum to 1, not rows.

Trained models hardly get worse. Seen: labmlai/annotated_deep_learning_paper_implementations 146, 282;
nerdai/llms-from-scratch-rs PR 30.
"""

from mutants.parts import hide, scores, spread

MUST_BREAK = ("attention.weighted-average", "attention.each-query-its-own-row")
SPREADS = ("causal", "contract", "generation", "gqa", "heads", "scale", "training")


def attention(q, k, v, *, causal=False, scale=None):
    return (hide(scores(q, k, scale), causal).softmax(-2) @ spread(v, q)).to(q.dtype)
