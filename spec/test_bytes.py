"""Bytes: a count of numbers becomes memory when somebody chooses how many bits each may have.

The bits are split into a sign, an exponent (range) and a fraction (precision), and the split matters as
much as their sum: it decides whether a large number overflows and a small gradient vanishes.
"""

import math

import pytest
import torch

from harness import Table, claim, close, measure, same
from refimpl import LLAMA_3_8B, cost

MIB = 2**20

# format: its dtype, and the sign, exponent and fraction bits that the refresher gives it
FORMATS = {
    "fp32": (torch.float32, (1, 8, 23)),
    "bf16": (torch.bfloat16, (1, 8, 7)),
    "fp16": (torch.float16, (1, 5, 10)),
    "fp8 e4m3": (torch.float8_e4m3fn, (1, 4, 3)),
    "fp8 e5m2": (torch.float8_e5m2, (1, 5, 2)),
}


def layout(dtype):
    """(sign, exponent, fraction) bits, read off a format's limits.

    The spacing at 1 gives the fraction. The exponents from that of the smallest normal number to that of
    the largest, with at least one more code for zero, need the exponent's bits.
    """
    info = torch.finfo(dtype)
    exponents = math.floor(math.log2(info.max)) - round(math.log2(info.tiny)) + 1
    return int(info.min < 0), math.ceil(math.log2(exponents + 1)), -round(math.log2(info.eps))


@claim("bytes.sign-exponent-fraction", needs=None, source="refresher §5, aside on bytes")
@pytest.mark.parametrize("name", FORMATS)
def test_bits_of_a_format_add_up_to_its_bytes(name):
    """A number takes a sign, exponent and fraction bits, and an eighth of their sum in bytes."""
    dtype, bits = FORMATS[name]
    same(layout(dtype), bits, f"{name}: sign, exponent and fraction bits")
    same(torch.empty(1, dtype=dtype).element_size(), sum(bits) // 8, f"bytes of one {name} number")


# One Llama-3-8B layer with 32 full key/value heads: four matrices of 4096 x 4096 = 2^26 numbers.
PROJECTIONS = LLAMA_3_8B.but(n_layers=1, n_kv_heads=32)

WEIGHED = {"fp32": "256 MiB", "bf16": "128 MiB", "fp16": "128 MiB", "fp8 e4m3": "64 MiB"}


def projection_bytes(make, dtype):
    """What the four attention matrices of a layer weigh, whatever they are called and however packed.

    They shrink in proportion to the heads' width, and nothing else in the model does: so they weigh twice
    what halving the heads takes off.
    """

    def weigh(d_head):
        return sum(p.nbytes for p in measure.parameters(make(PROJECTIONS.but(d_head=d_head), dtype)).values())

    return 2 * (weigh(128) - weigh(64))


def weights_table(make):
    """One layer's projections in each format that a model can be built in; fp8 is the count times 1."""
    rows = []
    for name, document in WEIGHED.items():
        dtype, (sign, exponent, fraction) = FORMATS[name]
        n = projection_bytes(make, dtype) if dtype.itemsize > 1 else cost.attention_parameters(PROJECTIONS)
        split = f"{sign}/{exponent}/{fraction}"
        rows.append((name, split, dtype.itemsize * 8, dtype.itemsize, n, document, f"{n / MIB:g} MiB"))
    columns = ("stored as", "sign/exp/frac", "bits", "bytes each", "total bytes", "document", "measured")
    return Table("What one layer's four attention matrices weigh", columns, tuple(rows))


@claim(
    "bytes.weights-follow-the-format",
    needs="Transformer",
    on="meta",
    source="refresher §5, aside on bytes",
)
def test_weights_weigh_their_count_times_the_width_of_the_format(impl, device, receipt):
    """The same weights take half the bytes in a 16-bit format: the count is fixed, the width is chosen."""

    def make(config, dtype):
        return impl.Transformer(config, device=device, dtype=dtype)

    with torch.no_grad():
        make(PROJECTIONS, torch.float32)(torch.zeros(1, 2, dtype=torch.int64, device=device))
    table = weights_table(make)
    receipt(table)
    for name, _, _, bytes_each, n_bytes, document, measured in table.rows:
        same(n_bytes, 2**26 * bytes_each, f"bytes of one layer's attention matrices in {name}")
        same(measured, document, f"the same in {name}, as printed")


@claim("bytes.powers-of-two", needs=None, source="refresher §5, aside on bytes; whiteboard, The KV cache")
@pytest.mark.parametrize(
    "n_bytes, binary, decimal",
    [
        (4 * 4096**2 * 4, 256 * 2**20, 268.4e6),  # four matrices of 2^12 by 2^12, 2^2 bytes a number
        (4 * 4096**2 * 1, 64 * 2**20, 67.1e6),  # a quarter of it in fp8
        (32 * 8192**2 * 4, 8 * 2**30, 8.59e9),  # a layer's scores at 8k
        (2 * 32 * 32 * 128 * 2, 512 * 2**10, 524.3e3),  # a token's cache, called 512 KB by the whiteboard
    ],
)
def test_binary_units_come_out_round_and_decimal_ones_do_not(n_bytes, binary, decimal):
    """Sizes that are powers of two are whole MiB or GiB, and 2 to 7 percent more in MB or GB."""
    same(n_bytes, binary, "bytes")
    close(n_bytes, decimal, 1e-3 * decimal, "bytes in decimal units, to the digits printed")


def through(value, dtype):
    """A number after a trip through a format."""
    return torch.tensor(value, dtype=torch.float64).to(dtype).item()


@claim("bytes.exponent-buys-range", needs=None, source="refresher §5, aside on bytes")
@pytest.mark.parametrize(
    "wide, fine, small",
    [(torch.bfloat16, torch.float16, 1e-30), (torch.float8_e5m2, torch.float8_e4m3fn, 2.0**-14)],
    ids=["bf16 and fp16", "e5m2 and e4m3"],
)
def test_bits_move_between_range_and_precision(wide, fine, small):
    """Of two formats of one size, the one with more exponent bits has more range and a coarser fraction."""
    a, b = torch.finfo(wide), torch.finfo(fine)
    same(a.bits, b.bits, "bits in all")
    same((a.max > b.max, a.tiny < b.tiny), (True, True), "more range at both ends")
    moved = layout(wide)[1] - layout(fine)[1]
    same(a.eps / b.eps, 2.0**moved, "how much coarser: a factor of 2 for each bit moved")
    same((through(small, wide) > 0, through(small, fine)), (True, 0.0), f"{small:.0e} in both")


@claim(
    "bytes.bf16-keeps-the-range-of-fp32",
    needs=None,
    source="refresher §5, aside on bytes",
    erratum="the refresher says that out of range a number overflows to infinity; fp8 e4m3 has no "
    "infinity: a million becomes its largest number, 448, or NaN, depending on who casts",
)
def test_bf16_holds_whatever_fp32_holds_and_fp16_overflows():
    """Casting to bf16 keeps fp32's range; fp16 overflows to infinity, e4m3 to something finite or NaN."""
    same(torch.finfo(torch.bfloat16).tiny, torch.finfo(torch.float32).tiny, "the smallest normal numbers")
    same(through(1e6, torch.bfloat16), 999424.0, "a million in bf16")
    same(through(1e6, torch.float16), math.inf, "a million in fp16")
    out = through(1e6, torch.float8_e4m3fn)
    same(out == 448.0 or math.isnan(out), True, "a million in e4m3 is 448 or NaN")
    codes = torch.arange(256, dtype=torch.uint8).view(torch.float8_e4m3fn).to(torch.float32)
    same(int(codes.isinf().sum()), 0, "infinities among the 256 e4m3 numbers")


@claim(
    "bytes.underflow-stops-an-update",
    needs=None,
    source="refresher §5, aside on bytes",
    erratum="the refresher says that a gradient which underflows stops that weight altogether; multiplied "
    "by a loss scale of 2^16 first, the same gradient survives fp16",
)
def test_gradient_of_1e_8_is_lost_in_fp16_only():
    """A gradient of 1e-8 vanishes in fp16 and its weight stands still; bf16 or a loss scale keeps it."""
    same(through(1e-8, torch.float16), 0.0, "1e-8 in fp16")
    close(through(1e-8, torch.bfloat16), 1e-8, 1e-8 * 2**-8, "1e-8 in bf16")
    rescued = through(1e-8 * 2**16, torch.float16) / 2**16
    close(rescued, 1e-8, 1e-8 * 2**-11, "1e-8 in fp16 with a loss scale of 2^16")


@pytest.mark.receipts("bytes")
def test_receipts(receipt):
    import refimpl

    receipt(weights_table(lambda config, dtype: refimpl.Transformer(config, device="meta", dtype=dtype)))
