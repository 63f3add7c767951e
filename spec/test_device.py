"""Devices: the same numbers everywhere, or a loud refusal. A silent bug once took RoPE out of a model.

Every claim of the other topics runs on each device present and is compared with float64 on the CPU: that is
the check on a second device that the refresher asks for. The claims here are about moving numbers.
"""

import math

import pytest
import torch

import refimpl
from harness import Table, at_least, at_most, between, claim, same

POSITIONS = (0, 3, 105, 4096, 500_000)

NUMBERS = {"int64": torch.int64, "int32": torch.int32, "float32": torch.float32, "bfloat16": torch.bfloat16}


def angle_errors(position):
    """How far each plane's angle is off where it is formed in float32 (64,), fastest first, d_head 128."""
    rates = 1e4 ** -(torch.arange(0, 128, 2, dtype=torch.float64) / 128)
    return (position * rates - (position * rates.float()).to(torch.float64)).abs()


def angles_table():
    """The planes that suffer most from angles in float32, at the last position of 4,096."""
    errors = angle_errors(4096)
    rows = tuple(
        (i, 4096 * 1e4 ** (-2 * i / 128), f"{errors[i]:.1e}" if errors[i] else "0") for i in (0, 1, 2, 8, 32)
    )
    columns = ("plane", "angle, rad", "float32 off by, rad")
    return Table("Angles formed in float32 at position 4,096, d_head 128", columns, rows)


@claim(
    "device.fastest-plane-is-exact-in-float32",
    needs=None,
    source="refresher §15",
    erratum="the document says that the angle table needs float64 for the fastest plane's sake; measured at "
    "position 4,096: the fastest plane's float32 angle is exact, the second's is off by 1.2e-04 rad",
)
def test_float32_angles_err_in_later_planes(receipt):
    """In float32 the fastest plane's angle is exact, being the position; the planes after it err most."""
    receipt(angles_table())
    errors = angle_errors(4096)
    same(float(errors[0]), 0.0, "the fastest plane's error at position 4,096")
    worst = int(errors.argmax())
    between(worst, 1, 8, "the plane that errs most")
    # Half a step of float32 below 4,096 for the product, and as much again for the rate.
    between(errors[worst], 1e-5, 4096 * torch.finfo(torch.float32).eps, "its error, in radians")


@claim("device.int64-bits", needs=None, source="refresher §15")
@pytest.mark.parametrize("position", [1, 105, 4096, 2**52 - 1])
def test_bits_of_a_position_are_next_to_nothing(position):
    """The bits of a position, read as float64, are that many times 2^-1074: indistinguishable from zero."""
    read = float(torch.tensor([position], dtype=torch.int64).view(torch.float64))
    same(read, math.ldexp(position, -1074), "the integer's bits as float64")
    at_most(read, 2.3e-308, "the same: below every normal number")
    if position == 105:
        same(f"{read:.3g}", "5.19e-322", "the document's figure")


@claim("device.silent-identity", needs=None, source="refresher §15")
def test_rope_on_misread_positions_is_the_identity(draw):
    """Given positions whose bits were misread, RoPE returns x unchanged and all offsets score the same."""
    # Entries of +1 and -1 make sums exact.
    x, positions = draw(1, 1, 5, 64).sign(), torch.tensor([0, 3, 105, 4093, 4096])
    misread = refimpl.rope(x, positions.view(torch.float64))
    same(misread, x, "x turned by misread positions")
    at_least(
        (refimpl.rope(x, positions)[..., 1:, :] - x[..., 1:, :]).abs().amax(-1), 0.1, "x turned, moved by"
    )

    def spread(turned):
        scores = turned[0, 0] @ turned[0, 0, 0]
        return float(scores.max() - scores.min())

    one = x[:, :, :1].expand(1, 1, 5, 64)
    same(spread(refimpl.rope(one, positions.view(torch.float64))), 0.0, "range of scores, positions misread")
    at_least(spread(refimpl.rope(one, positions)), 1.0, "range of scores, positions as they are")


@claim("device.two-steps", needs=None, per="device", source="refresher §15")
@pytest.mark.parametrize("number", NUMBERS)
def test_move_then_cast_gives_the_number(device, number):
    """Moved to the CPU first and cast to float64 after, every number is itself."""
    there = torch.tensor(POSITIONS).to(NUMBERS[number]).to(device)
    expected = [float(value) for value in torch.tensor(POSITIONS).to(NUMBERS[number]).tolist()]
    same(there.cpu().to(torch.float64).tolist(), expected, f"{number} moved, then cast")
    same(there.to("cpu", torch.float32).tolist(), expected, f"{number} to float32 in one call")


@claim("device.one-step-is-right-or-refused", needs=None, per="device", source="refresher §15")
@pytest.mark.parametrize("number", NUMBERS)
def test_move_and_cast_in_one_call_is_never_silently_wrong(device, number):
    """A move to the CPU and a cast to float64 in one call gives the number, or raises."""
    # On MPS, torch 2.13 reads an int64's bits and refuses a float; 2.14 writes nothing at all
    # (pytorch/pytorch 197715).
    there = torch.tensor(POSITIONS).to(NUMBERS[number]).to(device)
    expected = [float(value) for value in torch.tensor(POSITIONS).to(NUMBERS[number]).tolist()]
    try:
        came = there.to("cpu", torch.float64).tolist()
    except (TypeError, RuntimeError) as refusal:
        same("float64" in str(refusal), True, f"a refusal that names float64: {refusal}")
    else:
        same(came, expected, f"{number} moved and cast in one call")


@claim("device.round-trip", needs=None, per="device", source="refresher §15")
@pytest.mark.parametrize("number", NUMBERS)
def test_round_trip_changes_no_bit(device, number):
    """To the device and back, numbers keep every bit."""
    x = torch.tensor([-3, 0, 1, 105, 4096]).to(NUMBERS[number])
    same(x.to(device).cpu(), x, f"{number} there and back")


@pytest.mark.receipts("device")
def test_receipts(receipt):
    receipt(angles_table())
