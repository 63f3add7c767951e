"""Attention against the clock: fused and plain, long and short, many heads and few.

The documents count FLOPs and bytes. What a fused kernel gains by keeping the scores out of memory, and what
heads and lengths cost, is a matter of time.
"""

import torch
import torch.nn.functional as F

import refimpl
from benchmarks.clock import exponent, in_turn, ms, ratio, sized
from harness import Table, at_least, at_most, between, claim


def inputs(draw, n_heads, n, d_head):
    return tuple(draw(1, n_heads, n, d_head) for _ in range(3))


def fused(q, k, v):
    """PyTorch's fused kernel, where it has one for this device and dtype."""
    return F.scaled_dot_product_attention(q, k, v, is_causal=True)


# --- fused and plain ----------------------------------------------------------------------------------------


def lengths(device):
    return sized(device, (128, 512, 2048), (1024, 4096, 16384))


def length_times(impl, draw, device):
    """The plain formula, PyTorch's fused kernel and the implementation, by length."""
    calls = {}
    for n in lengths(device):
        q, k, v = inputs(draw, 4, n, 64)
        calls |= {
            ("plain", n): lambda q=q, k=k, v=v: refimpl.attention(q, k, v, causal=True),
            ("fused", n): lambda q=q, k=k, v=v: fused(q, k, v),
            ("tested", n): lambda q=q, k=k, v=v: impl.attention(q, k, v, causal=True),
        }
    with torch.no_grad():
        return in_turn(calls, device)


def fused_table(times, device):
    rows = [
        (n, *(ms(times, (who, n)) for who in ("plain", "fused", "tested")),
         ratio(times, ("plain", n), ("fused", n)), ratio(times, ("plain", n), ("tested", n)))
        for n in lengths(device)
    ]  # fmt: skip
    columns = ("tokens", "plain, ms", "fused, ms", "tested, ms", "plain / fused", "plain / tested")
    note = (
        "The documents: tiles trade arithmetic, which is cheap, for memory traffic, which is not, and never\n"
        "write the grid; so a fused kernel is faster, by more the longer the text. The FLOPs are the same.\n"
        f"Here the gap goes from {rows[0][-2]:.2f} to {rows[-1][-2]:.2f} times."
    )
    return Table("Causal attention, 4 heads of 64: PyTorch's fused kernel and the plain formula", columns,
                 tuple(rows), note)  # fmt: skip


@claim(
    "cost.fused-kernel-is-faster",
    needs="attention",
    source="refresher §5; whiteboard, The KV cache",
)
def test_fused_kernel_is_faster_and_the_gap_grows(impl, draw, device, receipt):
    """PyTorch's fused kernel beats the plain formula at a long text; the table times this one beside both."""
    times = length_times(impl, draw, device)
    receipt(fused_table(times, device))
    n = lengths(device)[-1]
    at_least(ratio(times, ("plain", n), ("fused", n)), 1.2, f"the plain formula's time in the fused's at {n}")


# --- the square ---------------------------------------------------------------------------------------------


def square_table(impl, draw, device):
    counts = sized(device, (256, 512, 1024, 2048), (2048, 4096, 8192, 16384))
    calls = {}
    for n in counts:
        q, k, v = inputs(draw, 2, n, 64)
        calls[n] = lambda q=q, k=k, v=v: impl.attention(q, k, v, causal=True)
    with torch.no_grad():
        times = in_turn(calls, device)
    rows = [(n, ms(times, n), (n / counts[0]) ** 2, ratio(times, n, counts[0])) for n in counts]
    grown = exponent(times, {n: n for n in counts})
    note = f"The documents: O(n^2), 16 times the compute for 4 times the tokens. Here: n^{grown:.2f}."
    columns = ("tokens", "ms", "times the shortest (document)", "measured")
    return Table("Attention's time by length", columns, tuple(rows), note), grown


@claim(
    "cost.attention-time-grows-with-the-square",
    needs="attention",
    source="whiteboard, The KV cache, How to say it; refresher, short version, §5",
)
def test_time_of_attention_grows_with_the_square(impl, draw, device, receipt):
    """Attention over a whole text takes time that grows about as the square of the text's length."""
    table, grown = square_table(impl, draw, device)
    receipt(table)
    between(grown, 1.4, 2.6, "the exponent of time in the length")


# --- the heads ----------------------------------------------------------------------------------------------


def heads_table(impl, draw, device):
    n, width = sized(device, 512, 4096), 512
    counts = (1, 4, 16, 32)
    calls = {}
    for n_heads in counts:
        q, k, v = inputs(draw, n_heads, n, width // n_heads)
        calls[n_heads] = lambda q=q, k=k, v=v: impl.attention(q, k, v, causal=True)
    with torch.no_grad():
        times = in_turn(calls, device)
    rows = [(h, width // h, ms(times, h), 1, ratio(times, h, 1)) for h in counts]
    note = (
        "The document: the head count is not what makes attention expensive. It counts matrix products;\n"
        f"each head also has a grid of its own. Here 32 heads take {rows[-1][-1]:.1f} times as long as one."
    )
    columns = ("heads", "d_head", "ms", "times one head (document)", "measured")
    return Table(f"Attention over {n} tokens, a width of {width} split", columns, tuple(rows), note)


@claim("cost.many-heads-take-far-less-than-as-many-times-as-long", needs="attention", source="refresher §5")
def test_many_heads_take_far_less_than_as_many_times_as_long(impl, draw, device, receipt):
    """32 heads that share one width take nothing like 32 times as long as one head."""
    table = heads_table(impl, draw, device)
    receipt(table)
    at_most(table.rows[-1][-1], 24.0, "the time of 32 heads in that of one")


# --- the layer ----------------------------------------------------------------------------------------------


def share_table(impl, draw, device):
    """One attention layer, timed in its two parts: four projections, and what happens between tokens."""
    d = sized(device, 512, 4096)
    counts, weight = (d // 4, d, 2 * d, 4 * d), draw(d, d) / d**0.5
    calls = {}
    for n in counts:
        x = draw(n, d)
        q, k, v = inputs(draw, d // 64, n, 64)
        calls |= {
            ("projections", n): lambda x=x: [x @ weight for _ in range(4)],
            ("scores", n): lambda q=q, k=k, v=v: impl.attention(q, k, v, causal=True),
        }
    with torch.no_grad():
        times = in_turn(calls, device, rounds=5)
    rows = [
        (n, f"{n / d:g}", f"{100 * n / (2 * d + n):.0f}%",
         f"{100 / (1 + ratio(times, ('projections', n), ('scores', n))):.0f}%")
        for n in counts
    ]  # fmt: skip
    note = (
        "The document: at a quarter of d_model the two products with the grid have 6% of the FLOPs each,\n"
        "and the projections 89%."
    )
    columns = ("tokens", "tokens / d_model", "of the FLOPs", "of the time")
    return Table(f"The quadratic part of an attention layer, d_model = {d}", columns, tuple(rows), note)


@claim("cost.quadratic-share-of-the-time", needs="attention", source="refresher, short version, §5")
def test_quadratic_part_takes_over_with_length(impl, draw, device, receipt):
    """The quadratic part's share of an attention layer's time grows with the length of the text."""
    table = share_table(impl, draw, device)
    receipt(table)
    first, last = (float(table.rows[i][-1].rstrip("%")) for i in (0, -1))
    at_least(last - first, 5.0, "points that the share gains from d_model / 4 tokens to 4 d_model")
