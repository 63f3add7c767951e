"""Attention: every output is an average of values, weighted by how well a query matches the keys."""

import pytest
import torch

from harness import agrees, at_least, at_most, claim, close, formula, probe, same

# The whiteboard's one row by hand: a query, three keys, three values.
ROW_Q = ((1.0, 0.0),)
ROW_K = ((1.0, 0.0), (0.0, 1.0), (1.0, 1.0))
ROW_V = ((1.0, 0.0), (0.0, 2.0), (2.0, 2.0))



@claim(
    "attention.formula",
    needs="attention",
    source="refresher §3, eq. 1, §10; whiteboard, Attention is a soft lookup",
)
@pytest.mark.parametrize("n_q, n_k, d_k, d_v", [(5, 5, 8, 8), (1, 7, 12, 5), (3, 9, 6, 10)])
@pytest.mark.parametrize("causal", [False, True], ids=["open", "causal"])
def test_output_is_softmax_of_scores_times_values(impl, draw, causal, n_q, n_k, d_k, d_v):
    """Attention computes softmax(q k^T / sqrt(d_k)) v, exactly, whatever kernel computes it."""
    q, k, v = draw(2, 6, n_q, d_k), draw(2, 2, n_k, d_k), draw(2, 2, n_k, d_v)
    agrees(impl.attention, formula.attention, q, k, v, causal=causal, what="attention's output")


@claim(
    "attention.weighted-average",
    needs="attention",
    source="refresher, short version, §2, §3, §7, §9; whiteboard, Attention is a soft lookup",
)
@pytest.mark.parametrize("causal", [False, True], ids=["open", "causal"])
@pytest.mark.parametrize("size", [1.0, 20.0])
def test_output_is_an_average_of_values(impl, draw, dtype, causal, size):
    """The weights of a query are at least 0, sum to 1, and blend the values and nothing else."""
    q, k, v = size * draw(2, 6, 5, 8), draw(2, 2, 9, 8), draw(2, 2, 9, 8)
    w = probe.weights(impl.attention, q, k, causal=causal, scale=0.3)  # (2, 6, 5, 9)
    eps = torch.finfo(dtype).eps
    at_least(w, 0.0, "the smallest weight")
    close(w.double().sum(-1), torch.ones(2, 6, 5), 9 * eps, "the sum of a query's weights")

    def blend(attention, q, k, v):
        return attention(q, k, v, causal=causal, scale=0.3)

    out = agrees(impl.attention, formula.attention, q, k, v, quantity=blend, what="the blend of values")
    mixed = w.double() @ v.repeat_interleave(3, dim=1).double()
    close(out, mixed, 4 * 9 * eps * float(v.abs().max()), "the output against its own weights' blend")
