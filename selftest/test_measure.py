"""The instruments: what is looked up on "meta" is what would have been worked out there."""

import pytest
import torch

import refimpl
from harness import SMALL, measure


def shapes_of(call):
    """Shape, strides and dtype of all that a call makes on "meta"."""
    found = []
    measure.watch(
        call, lambda op, into, out: found.extend((str(op), x.shape, x.stride(), x.dtype) for x in out)
    )
    return found


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_a_pass_that_is_looked_up_has_the_shapes_of_one_that_is_worked_out(dtype):
    model = refimpl.Transformer(SMALL, device="meta", dtype=dtype)
    tokens, known = torch.zeros(2, 7, dtype=torch.int64, device="meta"), {}
    plain = shapes_of(lambda: model(tokens))
    for _ in range(2):
        with measure.Shapes(known):
            looked_up = model(tokens), model(tokens[:, :3])
        assert [(x.shape, x.dtype) for x in looked_up] == [((2, 7, 61), dtype), ((2, 3, 61), dtype)]
        with measure.Shapes(known):
            assert shapes_of(lambda: model(tokens)) == plain


def test_the_default_dtype_is_not_remembered():
    known, found = {}, []
    for dtype in (torch.float32, torch.bfloat16, torch.float32):
        torch.set_default_dtype(dtype)
        try:
            with measure.Shapes(known):
                found.append((torch.ones(4, device="meta") / 3).dtype)
        finally:
            torch.set_default_dtype(torch.float32)
    assert found == [torch.float32, torch.bfloat16, torch.float32]


def test_an_answer_that_shares_its_inputs_memory_is_never_looked_up():
    known, x = {}, torch.ones(3, 4, device="meta")
    for _ in range(2):
        with measure.Shapes(known), torch.inference_mode():
            y = torch.nn.functional.dropout(x, 0.5, training=False)
            z = torch.ops.aten._unsafe_view(x, [4, 3])
        assert measure.storage(y) == measure.storage(z) == measure.storage(x)


def test_numbers_change_a_looked_up_dtype():
    known, x = {}, torch.ones(3, dtype=torch.int64, device="meta")
    for _ in range(2):
        with measure.Shapes(known):
            assert ((x * 2).dtype, (x * 2.0).dtype, (x * True).dtype) == (
                torch.int64, torch.float32, torch.int64,
            )  # fmt: skip


@pytest.mark.parametrize("n", [1, 5, 64])
def test_flops_are_those_of_torchs_own_counter(n):
    from torch.utils.flop_counter import FlopCounterMode

    model = refimpl.Transformer(SMALL, device="meta")
    tokens = torch.zeros(2, n, dtype=torch.int64, device="meta")
    counter = FlopCounterMode(display=False)
    with counter:
        model(tokens)
    with measure.Shapes({}):
        assert measure.flops(lambda: model(tokens)) == counter.get_total_flops()
