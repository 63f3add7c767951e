"""Block: norm, attention, add; norm, FFN, add. Each sublayer returns a correction to a stream that runs on.

A model is embedding, blocks in series, a final norm and scores for every token. All claims here see only
tokens and logits, and learn about the inside by choosing weights: a sublayer whose last matrix is zero
corrects nothing. Gains are drawn, never 1, since unit gains hide a norm in the wrong place.
"""

import pytest
import torch

from harness import (
    SMALL,
    Table,
    at_least,
    at_most,
    claim,
    close,
    formula,
    gradients,
    measure,
    probe,
    same,
)
from harness.checks import exact64
from refimpl import LLAMA_3_8B

BLOCK = "whiteboard, One block, and where the parameters live"
LAST = ("self_attn.o_proj", "mlp.down_proj")  # the matrices through which a sublayer corrects the stream


def without(weights, *parts, layer=""):
    """The weights with some matrices zero, in one layer or in all."""
    return {
        name: torch.zeros_like(w) if any(p in name for p in parts) and f"layers.{layer}" in name else w
        for name, w in weights.items()
    }


def logits_of(build, config, weights, tokens):
    with torch.no_grad():
        return build(config, weights)(tokens)


def by_hand(config, weights, tokens):
    """The logits by the documents' formulas in float64: x + attention(norm(x)), then x + FFN(norm(x))."""
    w = {name: exact64(t) for name, t in weights.items()}
    x, positions = w["model.embed_tokens.weight"][tokens.cpu()], torch.arange(tokens.shape[1])
    norm = lambda x, name: formula.rms_norm(x, w[f"{name}.weight"], eps=config.norm_eps)  # noqa: E731
    for i in range(config.n_layers):
        layer = f"model.layers.{i}"
        matrix = lambda part, layer=layer: w[f"{layer}.{part}.weight"].mT  # noqa: E731
        y = norm(x, f"{layer}.input_layernorm")
        q, k, v = (
            (y @ matrix(f"self_attn.{p}_proj")).unflatten(-1, (-1, config.d_head)).transpose(1, 2)
            for p in "qkv"
        )
        q, k = (formula.rope(t, positions, base=config.rope_base) for t in (q, k))
        out = formula.attention(q, k, v, causal=True, scale=config.d_head**-0.5)
        x = x + out.transpose(1, 2).flatten(-2) @ matrix("self_attn.o_proj")
        y = norm(x, f"{layer}.post_attention_layernorm")
        x = x + formula.feed_forward(y, *(matrix(f"mlp.{p}_proj") for p in ("gate", "up", "down")))
    return norm(x, "model.norm") @ w["lm_head.weight"].mT


# --- what goes in ------------------------------------------------------------------------------------

# x W shapes, as the refresher gives them; files store them the other way round
DOCUMENT = {
    "model.embed_tokens": (128256, 4096),
    "model.layers.0.input_layernorm": (4096,),
    "model.layers.0.self_attn.q_proj": (4096, 4096),
    "model.layers.0.self_attn.k_proj": (4096, 1024),
    "model.layers.0.self_attn.v_proj": (4096, 1024),
    "model.layers.0.self_attn.o_proj": (4096, 4096),
    "model.layers.0.post_attention_layernorm": (4096,),
    "model.layers.0.mlp.gate_proj": (4096, 14336),
    "model.layers.0.mlp.up_proj": (4096, 14336),
    "model.layers.0.mlp.down_proj": (14336, 4096),
}


def shapes_of(model):
    """The shapes of embedding and first block by name, matrices as x W uses them."""
    measure.matrices(model, "self_attn")  # declines a model with names of its own
    found = {name.removesuffix(".weight"): tuple(p.shape) for name, p in measure.parameters(model).items()}
    return {
        name: shape if name == "model.embed_tokens" else shape[::-1]
        for name, shape in found.items()
        if name == "model.embed_tokens" or "layers.0." in name
    }


def shapes_table(found):
    rows = [(name, str(DOCUMENT.get(name, "")), str(shape)) for name, shape in found.items()]
    return Table("Llama-3-8B: the embedding and one block", ("weights", "document", "measured"), tuple(rows))


@claim("block.two-sublayers-and-two-norms", needs="Transformer", on="meta", source="refresher §1, §8, §9")
def test_a_block_is_attention_ffn_and_two_norms(impl, device, receipt):
    """A Llama-3-8B block holds four attention matrices, three FFN matrices and two gains, and no more."""
    model = impl.Transformer(LLAMA_3_8B.but(n_layers=1), device=device, dtype=torch.float32)
    with torch.no_grad():
        model(torch.zeros(1, 4, dtype=torch.int64, device=device))
    found = shapes_of(model)
    receipt(shapes_table(found))
    same(found, DOCUMENT, "names and shapes")


# --- inside the attention box ------------------------------------------------------------------------


@claim(
    "block.one-input-three-projections",
    needs="Transformer",
    source=f"refresher §8; whiteboard, Attention is a soft lookup; {BLOCK}",
)
@pytest.mark.parametrize("name", ["q_proj", "k_proj", "v_proj", "o_proj"])
def test_every_projection_has_a_part_of_its_own(build, draw, dtype, name):
    """Queries, keys and values are three learned maps of one input, and each has its part in the logits."""
    weights, tokens = draw.weights(SMALL), draw.tokens(SMALL.n_vocab, 2, 7)
    before = logits_of(build, SMALL, weights, tokens)
    key = f"model.layers.1.self_attn.{name}.weight"
    changed = {**weights, key: draw(*weights[key].shape) / weights[key].shape[1] ** 0.5}
    after = logits_of(build, SMALL, changed, tokens)
    within = probe.logits_bound(SMALL, weights, tokens, dtype)
    at_least(
        (exact64(after) - exact64(before)).abs().max(), min(4 * within, 0.2), f"the change by another {name}"
    )
    close(after, by_hand(SMALL, changed, tokens), within, f"the logits with another {name}")


@claim("block.values-carry-no-position", needs="Transformer", source="refresher §8")
@pytest.mark.parametrize("n_kv_heads", [2, 6])
def test_one_token_repeated_is_the_same_everywhere(build, draw, dtype, n_kv_heads):
    """Position enters in the match alone: where all values are one, repeated, every position's logits agree.

    RoPE turns queries and keys and never values, and nothing is added to the embeddings.
    """
    config = SMALL.but(n_kv_heads=n_kv_heads)
    weights, tokens = draw.weights(config), draw.tokens(config.n_vocab, 2, 1).repeat(1, 16)
    logits = logits_of(build, config, weights, tokens)
    within = 2 * probe.logits_bound(config, weights, tokens, dtype)
    close(logits, exact64(logits[:, :1]).expand(logits.shape), within, "the logits at each position")


# --- the wrapping ------------------------------------------------------------------------------------


@claim(
    "block.norm-sublayer-add-twice",
    needs="Transformer",
    source=f"refresher §8, §9; {BLOCK}",
)
@pytest.mark.parametrize(
    "changes, silent",
    [
        ({}, ()),
        ({}, ("o_proj",)),
        ({}, ("down_proj",)),
        ({"n_layers": 5}, ()),
        # W_q and W_o square and of a width that models have, and another base than the default.
        ({"d_model": 64, "n_heads": 8, "rope_base": 5e5}, ()),
    ],
    ids=["both", "ffn", "attention", "five-layers", "square-matrices"],
)
def test_a_block_is_norm_attention_add_norm_ffn_add(build, draw, dtype, silent, changes):
    """A block is x + attention(norm(x)) and then x + FFN(norm(x)), each with a norm and a skip of its own."""
    config = SMALL.but(**{"n_layers": 1, "norm_eps": 1e-5, "rope_base": 1e4} | changes)
    weights, tokens = without(draw.weights(config), *silent), draw.tokens(config.n_vocab, 2, 5)
    within = probe.logits_bound(config, weights, tokens, dtype)
    close(logits_of(build, config, weights, tokens), by_hand(config, weights, tokens), within, "the logits")


@claim(
    "block.identity-without-corrections",
    needs="Transformer",
    source=f"refresher §8; {BLOCK}",
    erratum="the document says that a sublayer which learns nothing useful leaves the identity rather than "
    "noise; it takes a last matrix of zero, and sublayers as they are drawn change what follows altogether",
)
def test_blocks_that_correct_nothing_are_the_identity(build, draw, dtype):
    """Blocks whose sublayers end in zero are the identity: the logits are the final norm of the embedding's.

    With unit gains a norm on the stream itself would pass, since the final norm undoes it.
    """
    config = SMALL.but(n_layers=6)
    weights, tokens = draw.weights(config), draw.tokens(config.n_vocab, 2, 7)
    idle = without(weights, *LAST)
    x = exact64(weights["model.embed_tokens.weight"])[tokens.cpu()]
    x = formula.rms_norm(x, exact64(weights["model.norm.weight"]), eps=config.norm_eps)
    exact = x @ exact64(weights["lm_head.weight"]).mT
    within = probe.logits_bound(config, idle, tokens, dtype)
    close(logits_of(build, config, idle, tokens), exact, within, "the logits of idle blocks")
    drawn = exact64(logits_of(build, config, weights, tokens))
    at_least((drawn - exact).norm() / exact.norm(), 0.5, "how far drawn blocks are from the identity")


@claim("block.in-series", needs="Transformer", source="refresher §1, §8")
def test_blocks_follow_one_another_with_weights_of_their_own(build, draw, dtype):
    """Blocks stand in series with weights of their own: an idle one can go, and two cannot swap places."""
    config = SMALL.but(n_layers=3)
    weights, tokens = draw.weights(config), draw.tokens(config.n_vocab, 2, 7)
    within = 2 * probe.logits_bound(config, weights, tokens, dtype)
    idle = logits_of(build, config, without(weights, *LAST, layer="1."), tokens)
    two = {n.replace("layers.2.", "layers.1."): w for n, w in weights.items() if "layers.1." not in n}
    close(idle, exact64(logits_of(build, config.but(n_layers=2), two, tokens)), within, "without block 1")
    places = {"layers.0.": "layers.2.", "layers.2.": "layers.0."}
    turned = {n.replace(n[6:15], places.get(n[6:15], n[6:15])): w for n, w in weights.items()}
    before, after = (exact64(logits_of(build, config, w, tokens)) for w in (weights, turned))
    at_least((after - before).abs().max(), min(4 * within, 0.2), "the change when blocks 0 and 2 swap places")


@claim(
    "block.stream-is-not-normalised",
    needs="Transformer",
    source=f"refresher §8; {BLOCK}",
    erratum="the document says that pre-norm leaves the residual path unnormalised end to end; it ends in "
    "the final norm: with idle blocks the logits do not see the embedding's size at all",
)
def test_only_the_final_norm_stands_on_the_stream(build, draw, dtype):
    """The stream is normalised once, at its end: before that, large embeddings drown the corrections."""
    config = SMALL.but(norm_eps=1e-24)
    weights, tokens = draw.weights(config), draw.tokens(config.n_vocab, 2, 7)
    table = "model.embed_tokens.weight"
    size = 2.0**9  # of the embedding, beside corrections of size 1

    def logits(weights, size):
        return exact64(logits_of(build, config, {**weights, table: size * weights[table]}, tokens))

    idle = without(weights, *LAST)
    within = 2 * probe.logits_bound(config, idle, tokens, dtype)
    plain = logits(idle, 1.0)
    at_least(plain.norm(), 1.0, "the size of idle blocks' logits")
    close(logits(idle, size), plain, within, "idle blocks' logits for a larger embedding: the final norm")
    # Four corrections of size about 1 to 3 beside a stream of 512; a norm on the stream would bring the
    # embedding back to size 1 and keep their share at more than a half.
    share = (logits(weights, size) - plain).norm() / plain.norm()
    at_most(share, 0.1 + within / float(plain.abs().max()), "the corrections' share with a large embedding")
    at_least((logits(weights, 1.0) - plain).norm() / plain.norm(), 0.4, "their share with one of size 1")


# --- the way back ------------------------------------------------------------------------------------


def parameter(model, name):
    """A parameter by the name that its weights were loaded under; a model may have names of its own."""
    found = measure.parameters(model)
    if name not in found:
        raise NotImplementedError("not offered: its parameters have names of their own")
    return found[name]


def embedding_gradient(build, config, weights, tokens, along):
    """d (logits . along) / d embedding table, read off the model's own parameter."""
    model = build(config, weights)
    table = parameter(model, "model.embed_tokens.weight")
    with torch.enable_grad():
        return exact64(gradients(model(tokens), table, along=along)[0])


@claim(
    "block.gradient-passes-the-skip",
    needs="Transformer",
    gradients=True,
    source=f"refresher §8; {BLOCK}",
    erratum="the documents say that the gradient comes back undiminished and without being rescaled; that is "
    "the skip's own part: drawn sublayers add theirs, which over six blocks is as large as the skip's",
)
def test_idle_blocks_pass_the_gradient_on_as_it_is(build, draw, dtype):
    """The skip hands the gradient back as it is: six idle blocks return the gradient of one."""
    deep, shallow = SMALL.but(n_layers=6), SMALL.but(n_layers=1)
    weights, tokens = draw.weights(deep), draw.tokens(SMALL.n_vocab, 2, 5)
    along = draw(2, 5, SMALL.n_vocab)
    idle, one = without(weights, *LAST), {n: w for n, w in weights.items() if "layers" not in n or ".0." in n}
    expected = embedding_gradient(build, shallow, without(one, *LAST), tokens, along)
    at_least(expected.norm(), 0.1, "the size of the gradient that one idle block returns")
    found = embedding_gradient(build, deep, idle, tokens, along)
    # The way is the same, whatever the depth: a few roundings of the final norm's backward pass.
    within = 16 * torch.finfo(dtype).eps * float(expected.abs().max())
    close(found, expected, within, "the embedding's gradient through idle blocks")
    drawn = embedding_gradient(build, deep, weights, tokens, along)
    at_least((drawn - expected).norm() / expected.norm(), 0.4, "what drawn blocks add, over the skip's part")


# Wide enough that the gradient's size differs little from draw to draw.
WIDE = SMALL.but(d_model=126, d_ff=168)


def last_gradient(build, draw, n_layers):
    """|gradient| of the last block's W_down at a fresh start: matrices of N(0, 0.02), gains of 1."""
    config = WIDE.but(n_layers=n_layers)
    start = {
        name: 0.02 * w / w.std() if w.ndim == 2 else torch.ones_like(w)
        for name, w in draw.weights(config).items()
    }
    tokens, along = draw.tokens(config.n_vocab, 2, 10), draw(2, 10, config.n_vocab)
    model = build(config, start)
    matrix = parameter(model, f"model.layers.{n_layers - 1}.mlp.down_proj.weight")
    return float(exact64(gradients(model(tokens), matrix, along=along)[0]).norm())


# At this start the gradients reach 1e-5, below what float16 keeps, so the claim has its own dtype.
@claim(
    "block.last-gradient-falls-with-depth",
    needs="Transformer",
    gradients=True,
    dtypes=("float32",),
    source=f"refresher §8; {BLOCK}",
)
def test_gradients_near_the_output_fall_with_depth(build, draw):
    """At the start the last block's gradient falls with depth, as pre-norm has it; under post-norm it stays.

    The stream grows with every correction, so that the final norm divides by more: about as 1/sqrt(depth).
    """
    # The ratio's logarithm deviates by 0.12 about ln 0.26: 0.55 is 6 deviations off. Post-norm's deviates by
    # 0.07 about ln 1.0, 9 deviations away.
    ratio = last_gradient(build, draw, 12) / last_gradient(build, draw, 1)
    at_most(ratio, 0.55, "the last W_down's gradient in 12 blocks over that in 1")


@pytest.mark.receipts("block")
def test_receipts(receipt):
    import refimpl

    model = refimpl.Transformer(LLAMA_3_8B.but(n_layers=1), device="meta")
    receipt(shapes_table(shapes_of(model)))
