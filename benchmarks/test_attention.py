"""Attention against the clock: fused and plain, long and short, many heads and few.

The documents count FLOPs and bytes. What a fused kernel gains by keeping the scores out of memory, and what
heads and lengths cost, is a matter of time.
"""

import torch
import torch.nn.functional as F

import refimpl
from benchmarks.clock import clear_of_launches, exponent, here, in_turn, ms, ratio, sized
from harness import Table, at_least, at_most, between, claim


def inputs(draw, n_heads, n, d_head):
    return tuple(draw(1, n_heads, n, d_head) for _ in range(3))


def plain(q, k, v):
    return refimpl.attention(q, k, v, causal=True)


def fused(q, k, v):
    """PyTorch's fused kernel, where it has one for this device and dtype."""
    return F.scaled_dot_product_attention(q, k, v, is_causal=True)


# --- fused and plain ----------------------------------------------------------------------------------------


def fused_table(draw, device):
    counts, calls = sized(device, (128, 512, 2048), (512, 2048, 8192)), {}
    for n in counts:
        q, k, v = inputs(draw, 4, n, 64)
        calls |= {
            ("plain", n): lambda q=q, k=k, v=v: plain(q, k, v),
            ("fused", n): lambda q=q, k=k, v=v: fused(q, k, v),
        }
    with torch.no_grad():
        times = in_turn(calls, device)
    gaps = [ratio(times, ("plain", n), ("fused", n)) for n in counts]
    rows = [
        (n, *(ms(times, (who, n)) for who in ("plain", "fused")), gap)
        for n, gap in zip(counts, gaps, strict=True)
    ]
    columns = ("tokens", f"plain, {times.unit}", f"fused, {times.unit}", "plain / fused")
    measured = (
        f"the plain formula takes {gaps[0]:.1f} times as long at the shortest, {gaps[-1]:.1f} at the longest"
    )
    note = (
        "The documents: tiles trade arithmetic, which is cheap, for memory traffic, which is not, and never\n"
        "write the grid; so a fused kernel is faster, by more the longer the text. The FLOPs are the same.\n"
        f"{here(gaps[-1] > max(1, gaps[0]), measured)}"
    )
    title = "Causal attention, 4 heads of 64: PyTorch's fused kernel and the plain formula"
    return Table(title, columns, tuple(rows), note), gaps


@claim(
    "cost.fused-kernel-is-faster",
    needs=None,
    per="device",
    source="refresher §5; whiteboard, The KV cache",
)
def test_fused_kernel_is_faster_at_a_long_text(draw, device, receipt):
    """PyTorch's fused kernel takes less time than the plain formula at a long text."""
    table, gaps = fused_table(draw, device)
    receipt(table)
    at_least(gaps[-1], 1.2, "the plain formula's time in the fused kernel's, at the longest")


# --- the square ---------------------------------------------------------------------------------------------


def square_table(impl, draw, device):
    """The implementation by length, and for comparison the plain formula and PyTorch's fused kernel."""
    n_heads = sized(device, 2, 8)
    counts, calls = sized(device, (256, 512, 1024, 2048), (2048, 4096, 8192)), {}
    for n in counts:
        q, k, v = inputs(draw, n_heads, n, 64)
        calls |= {
            n: lambda q=q, k=k, v=v: impl.attention(q, k, v, causal=True),
            ("plain", n): lambda q=q, k=k, v=v: plain(q, k, v),
            ("fused", n): lambda q=q, k=k, v=v: fused(q, k, v),
        }
    with torch.no_grad():
        times = in_turn(calls, device)
    rows = [
        (n, ms(times, n), (n / counts[0]) ** 2, ratio(times, n, counts[0]),
         *(ratio(times, n, (who, n)) for who in ("plain", "fused")))
        for n in counts
    ]  # fmt: skip
    grown = exponent(times, {n: n for n in counts})
    note = (
        f"The documents: O(n^2), 16 times the compute for 4 times the tokens. Here: n^{grown:.2f}.\n"
        "The last columns judge nothing: the time in that of refimpl's formula, and of PyTorch's kernel."
    )
    columns = ("tokens", times.unit, "times the shortest (document)", "measured", "times plain",
               "times fused")  # fmt: skip
    return Table("Attention's time by length", columns, tuple(rows), note), (times, counts, grown)


@claim(
    "cost.attention-time-grows-with-the-square",
    needs="attention",
    source="whiteboard, The KV cache, How to say it; refresher, short version, §5",
)
def test_time_of_attention_grows_with_the_square(impl, draw, device, receipt):
    """Attention over a whole text takes time that grows about as the square of the text's length."""
    table, (times, counts, grown) = square_table(impl, draw, device)
    receipt(table)
    clear_of_launches(times, counts[-1], counts[0])
    between(grown, 1.4, 2.6, "the exponent of time in the length")


# --- the heads ----------------------------------------------------------------------------------------------


def heads_table(impl, draw, device):
    n, width = sized(device, 512, 2048), 512
    counts = (1, 4, 16, 32)
    calls = {}
    for n_heads in counts:
        q, k, v = inputs(draw, n_heads, n, width // n_heads)
        calls[n_heads] = lambda q=q, k=k, v=v: impl.attention(q, k, v, causal=True)
    with torch.no_grad():
        times = in_turn(calls, device)
    rows = [(h, width // h, ms(times, h), 1, ratio(times, h, 1)) for h in counts]
    many = ratio(times, 32, 1)
    note = (
        "The document: the head count is not what makes attention expensive. It counts matrix products;\n"
        "each head also has a grid of its own.\n"
        f"{here(many <= 2, f'32 heads take {many:.1f} times as long as one')}"
    )
    columns = ("heads", "d_head", times.unit, "times one head (document)", "measured")
    return Table(f"Attention over {n} tokens, a width of {width} split", columns, tuple(rows), note), many


@claim("cost.many-heads-take-far-less-than-as-many-times-as-long", needs="attention", source="refresher §5")
def test_many_heads_take_far_less_than_as_many_times_as_long(impl, draw, device, receipt):
    """32 heads that share one width take nothing like 32 times as long as one head."""
    table, many = heads_table(impl, draw, device)
    receipt(table)
    at_most(many, 24.0, "the time of 32 heads in that of one")


# --- the layer ----------------------------------------------------------------------------------------------


def share_table(impl, draw, device):
    """One attention layer, timed in its two parts: four projections, and what happens between tokens."""
    d = sized(device, 512, 1024)
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
    counted = [100 * n / (2 * d + n) for n in counts]
    shares = [100 / (1 + ratio(times, ("projections", n), ("scores", n))) for n in counts]
    rows = [
        (n, f"{n / d:g}", f"{work:.0f}%", f"{share:.0f}%")
        for n, work, share in zip(counts, counted, shares, strict=True)
    ]
    note = (
        "The document: at a quarter of d_model the two products with the grid have 6% of the FLOPs each,\n"
        "and the projections 89%.\n"
        f"{here(shares[0] <= counted[0] + 5, f'the quadratic part takes {shares[0]:.0f}% of the time there')}"
    )
    columns = ("tokens", "tokens / d_model", "of the FLOPs", "of the time")
    title = f"The quadratic part of an attention layer, d_model = {d}"
    return Table(title, columns, tuple(rows), note), (times, counts, shares)


@claim("cost.quadratic-share-of-the-time", needs="attention", source="refresher, short version, §5")
def test_quadratic_part_takes_over_with_length(impl, draw, device, receipt):
    """The quadratic part's share of an attention layer's time grows with the length of the text."""
    table, (times, counts, shares) = share_table(impl, draw, device)
    receipt(table)
    clear_of_launches(times, ("projections", counts[-1]), ("projections", counts[0]))
    gained = shares[-1] - shares[0]
    at_least(gained, 5.0, "points that the share gains from d_model / 4 tokens to 4 d_model")
