"""The reference against Hugging Face's Llama, on the same weights."""

import pytest
import torch

import refimpl
from harness import Draw
from refimpl import ModelConfig

llama = pytest.importorskip("adapters.transformers_llama", reason="needs the hf extra")

SHAPES = {
    "grouped": ModelConfig(61, 42, 2, 6, 2, 8, 56, rope_base=5e5, norm_eps=1e-5),
    "tied": ModelConfig(61, 42, 2, 6, 2, 8, 56, tie_embeddings=True),
    "multi-head": ModelConfig(61, 48, 3, 6, 6, 8, 56),
    "multi-query": ModelConfig(61, 42, 2, 6, 1, 10, 56),
    "wide heads": ModelConfig(61, 32, 2, 4, 2, 16, 40),
}


def pair(config, dtype=torch.float32):
    draw = Draw("parity", 0)
    weights = draw.weights(config)
    ours = refimpl.Transformer(config, dtype=dtype)
    theirs = llama.Transformer(config, device="cpu", dtype=dtype)
    for model in (ours, theirs):
        model.load_state_dict({name: w.to(dtype) for name, w in weights.items()})
    return ours, theirs, draw.tokens(config.n_vocab, 2, 13)


@pytest.mark.parametrize("config", SHAPES.values(), ids=SHAPES)
@torch.no_grad()
def test_logits_are_the_librarys_to_float32_rounding(config):
    ours, theirs, tokens = pair(config)
    logits = theirs(tokens)
    # 13 tokens through 2 or 3 blocks: a few dozen roundings of numbers up to |logits|.
    bound = 32 * torch.finfo(torch.float32).eps * logits.abs().max()
    assert (ours(tokens) - logits).abs().max() <= bound


@pytest.mark.parametrize("config", SHAPES.values(), ids=SHAPES)
@pytest.mark.parametrize("size", [1, 2, 3])
@torch.no_grad()
def test_cached_chunks_are_the_librarys_full_pass(config, size):
    ours, theirs, tokens = pair(config)
    cache = ours.new_cache()
    chunks = [*tokens[:, :9].split(size, dim=1), *tokens[:, 9:].split(1, dim=1)]
    stepwise = torch.cat([ours(chunk, cache) for chunk in chunks], dim=1)
    full = theirs(tokens)
    assert (stepwise - full).abs().max() <= 32 * torch.finfo(torch.float32).eps * full.abs().max()


@torch.no_grad()
def test_float64_stays_float64_inside():
    """The library norms in float32 even then; the reference's own cached pass agrees to float64."""
    ours, _, tokens = pair(SHAPES["grouped"], torch.float64)
    cache = ours.new_cache()
    stepwise = torch.cat([ours(chunk, cache) for chunk in tokens.split(4, dim=1)], dim=1)
    full = ours(tokens)
    assert (stepwise - full).abs().max() <= 32 * torch.finfo(torch.float64).eps * full.abs().max()


def test_keys_and_orientation_are_the_librarys():
    ours, theirs, _ = pair(SHAPES["grouped"])
    assert {n: p.shape for n, p in ours.named_parameters()} == {
        n: p.shape for n, p in theirs.named_parameters()
    }


def test_a_tied_checkpoint_may_leave_the_head_out():
    config = SHAPES["tied"]
    weights = Draw("tied", 0).weights(config)
    del weights["lm_head.weight"]
    model = refimpl.Transformer(config)
    model.load_state_dict(weights)
    assert model.lm_head.weight is model.model["embed_tokens"].weight


@pytest.mark.parametrize(
    "change, says",
    [
        ({"n_heads": 5}, "multiple of n_kv_heads"),
        ({"d_head": 7}, "even"),
        ({"n_layers": 0}, "n_layers is a positive integer"),
        ({"d_ff": 1.5}, "d_ff is a positive integer"),
    ],
)
def test_impossible_shapes_are_refused_by_name(change, says):
    with pytest.raises(ValueError, match=says):
        SHAPES["grouped"].but(**change)


def test_causal_rows_without_a_key_are_refused():
    q, k = torch.ones(1, 1, 3, 2), torch.ones(1, 1, 2, 2)
    with pytest.raises(ValueError, match="n_q <= n_k"):
        refimpl.attention(q, k, k, causal=True)
