"""Drawn inputs: what one implementation is given does not depend on what another asked for before it."""

import torch

from harness import Draw


def asked(draw, detour=False):
    """Numbers of every kind; the detour asks for more of them on the way."""
    first = [draw(2, 3), draw.tokens(50, 4)]
    if detour:
        draw.uniform(0.0, 1.0, 7)
    return [*first, draw.uniform(1.0, 2.0, 5), draw.shuffle(6), draw(3)]


def test_a_shared_tape_gives_the_numbers_of_a_tape_of_ones_own():
    tape = []
    for detour in (False, False, True, True, False):
        alone, shared = Draw("text", 3), Draw("text", 3, tape=tape)
        for one, other in zip(asked(alone, detour), asked(shared, detour), strict=True):
            assert torch.equal(one, other)


def test_what_is_written_into_drawn_numbers_stays_off_the_tape():
    tape = []
    for dtype in (torch.float32, torch.float64):
        for _ in range(2):
            numbers = Draw("text", 3, dtype=dtype, tape=tape)(4)
            assert torch.equal(numbers, Draw("text", 3, dtype=dtype)(4))
            numbers.zero_()
