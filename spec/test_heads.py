"""Heads: a reshape of a fixed budget, which buys several opinions instead of one."""

import pytest
import torch

from harness import SMALL, Table, claim, measure, same
from refimpl import LLAMA_3_8B, cost

HEADS = (1, 8, 32, 64)

ONE_LAYER = LLAMA_3_8B.but(n_layers=1, n_kv_heads=32)


def split_into(n_heads):
    """A Llama-3-8B layer with its 4096 split over n_heads full heads."""
    return ONE_LAYER.but(n_heads=n_heads, n_kv_heads=n_heads, d_head=4096 // n_heads)


def projections(model):
    """The four attention matrices of the first layer, by name."""
    names = measure.parameters(model)
    return {name.split(".")[-2]: p for name, p in names.items() if "layers.0.self_attn" in name}


def projection_table(make):
    """Parameters of one layer's attention by the number of heads: the document says 67.1M for any."""
    rows = [
        (n_heads, 4096 // n_heads, "67.1M", sum(p.numel() for p in projections(make(split_into(n_heads))).values()))
        for n_heads in HEADS
    ]
    return Table("Attention parameters of one block", ("n_heads", "d_head", "document", "measured"), tuple(rows))


@claim(
    "heads.params-constant",
    needs="Transformer",
    on="meta",
    source="refresher, short version, §5",
)
@pytest.mark.parametrize("n_heads", HEADS)
def test_number_of_parameters_ignores_the_number_of_heads(impl, device, n_heads):
    """Splitting d_model over more heads leaves the number of parameters where it was."""
    config = split_into(n_heads)
    model = impl.Transformer(config, device=device, dtype=torch.float32)
    model(torch.zeros(1, 4, dtype=torch.int64, device=device))
    found = {name: tuple(p.shape) for name, p in projections(model).items()}
    same(found, dict.fromkeys(("q_proj", "k_proj", "v_proj", "o_proj"), (4096, 4096)), "the four matrices")
    same(measure.n_parameters(model), cost.n_parameters(config), "parameters of the whole model")


@pytest.mark.receipts("heads")
def test_receipts(receipt):
    import refimpl

    receipt(projection_table(lambda config: refimpl.Transformer(config, device="meta")))
