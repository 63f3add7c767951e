"""The two tables at the ends of the stack: a token becomes a row, and a vector becomes scores again.

The embedding looks up one row a token. The head compares the last vector with a row for every word of the
vocabulary. The tables have one shape; a model may keep two of them or use one in both directions.
"""

import pytest
import torch
import torch.nn.functional as F

import refimpl
from harness import (
    SMALL,
    Table,
    at_least,
    at_most,
    between,
    claim,
    close,
    gradients,
    measure,
    probe,
    same,
)  # fmt: skip
from harness.checks import exact64
from refimpl import LLAMA_3_8B, cost

TABLE = LLAMA_3_8B.n_vocab * LLAMA_3_8B.d_model  # 525,336,576
N = cost.n_parameters(LLAMA_3_8B)  # 8,030,261,248


# A vocabulary whose last tokens have numbers that no 16-bit integer holds, and that no power of two divides.
WORDY = SMALL.but(n_vocab=2**15 + 3, d_model=6, n_layers=1, n_heads=2, n_kv_heads=1, d_head=4, d_ff=5)


def silenced(weights):
    """The same weights with blocks that add nothing: what a token's row alone comes to."""
    quiet = ("o_proj", "down_proj")
    return {name: 0 * w if any(part in name for part in quiet) else w for name, w in weights.items()}


# --- on the way in ---------------------------------------------------------------------------------------


@claim("lm-head.table-has-a-row-a-token", needs="Transformer", on="meta", source="refresher §8, §13")
@pytest.mark.parametrize("tied", [False, True], ids=["untied", "tied"])
def test_tables_have_a_row_for_each_token(impl, device, tied):
    """A word more in the vocabulary is a row of d_model numbers more in each table, and a score more."""
    sizes, config = [], SMALL.but(n_layers=1, tie_embeddings=tied)
    for n_vocab in (SMALL.n_vocab, SMALL.n_vocab + 1):
        model = impl.Transformer(config.but(n_vocab=n_vocab), device=device, dtype=torch.float32)
        logits = model(torch.zeros(1, 3, dtype=torch.int64, device=device))
        same(logits.shape[-1], n_vocab, "scores of a position")
        sizes.append(measure.n_parameters(model))
    same(sizes[1] - sizes[0], SMALL.d_model * (1 if tied else 2), "numbers that one word more adds")
    same(TABLE, 128256 * 4096, "numbers in one of Llama-3-8B's tables")


@claim("lm-head.only-the-row-enters", needs="Transformer", source="refresher §8")
@pytest.mark.parametrize("config", [SMALL, WORDY], ids=["61-words", "32771-words"])
def test_only_its_row_tells_a_token(build, draw, dtype, config):
    """A token enters by its embedding row alone: two tokens with one row cannot be told apart."""
    weights, tokens = draw.weights(config), draw.tokens(config.n_vocab, 2, 4)
    tokens[0, 0] = config.n_vocab - 3
    i, j = config.n_vocab - 3, config.n_vocab - 2
    table = weights["model.embed_tokens.weight"].clone()
    table[j] = table[i]
    renamed = torch.where(tokens == i, j, tokens)
    within = 2 * probe.logits_bound(config, weights, tokens, dtype)
    with torch.no_grad():
        apart = build(config, weights)
        at_least(
            gap(apart(tokens), apart(renamed)),
            min(within, 0.2),
            "the move of the scores with two different rows",
        )
        model = build(config, weights | {"model.embed_tokens.weight": table})
        same(model(renamed), model(tokens), "the scores after one token is replaced by its double")


def gap(a, b):
    return (exact64(a) - exact64(b)).abs().max()


@claim("lm-head.context-enters-in-the-blocks", needs="Transformer", source="refresher §8")
def test_context_enters_in_the_blocks(build, draw, dtype):
    """A token's row is the same in every context; what the blocks make of it is not."""
    weights, tokens = draw.weights(SMALL), draw.tokens(SMALL.n_vocab, 2, 6)
    tokens[1, -1] = tokens[0, -1]  # one word at the end of two different texts
    tokens[1, 0] = (tokens[0, 0] + 1) % SMALL.n_vocab
    within = 2 * probe.logits_bound(SMALL, weights, tokens, dtype)
    with torch.no_grad():
        alone = build(SMALL, silenced(weights))(tokens)[:, -1]
        read = build(SMALL, weights)(tokens)[:, -1]
    close(alone[0], alone[1], within, "the last word's scores without blocks, in one text against the other")
    # In 16 bits the bound is wide at some weights; scores vary by about 1.
    at_least(
        gap(read[0], read[1]),
        min(2 * within, 0.2),
        "the last word's scores with blocks, between the two texts",
    )


# --- on the way out --------------------------------------------------------------------------------------


@claim(
    "lm-head.final-norm",
    needs="Transformer",
    through=("rms_norm",),
    source="refresher §13",
)
@pytest.mark.parametrize("factor", [0.125, 16.0])
def test_final_norm_takes_the_size_away(build, draw, dtype, factor):
    """One more RMSNorm before the head: the size of the stream does not reach the scores, its gain does."""
    # Powers of two change no rounding; eps vanishes beside mean squares of 1, 1/64 and 256.
    config = SMALL.but(norm_eps=1e-20)
    weights, tokens = silenced(draw.weights(config)), draw.tokens(config.n_vocab, 2, 6)
    bigger = weights | {"model.embed_tokens.weight": factor * weights["model.embed_tokens.weight"]}
    louder = weights | {"model.norm.weight": factor * weights["model.norm.weight"]}
    within = 2 * probe.logits_bound(config, weights, tokens, dtype)
    with torch.no_grad():
        logits = build(config, weights)(tokens)
        close(build(config, bigger)(tokens), logits, within, "scores with a stream of another size")
        gained = build(config, louder)(tokens)
        close(gained, factor * exact64(logits), factor * within, "scores with another gain")


@claim(
    "lm-head.rows-compete-by-product",
    needs="Transformer",
    source="refresher §13",
    erratum="the document calls the prediction a similarity search; measured: the score is an inner "
    "product, so a row twice as long scores twice as much without pointing anywhere else",
)
@pytest.mark.parametrize("config", [SMALL, WORDY], ids=["61-words", "32771-words"])
def test_score_is_a_product_with_the_words_row(build, draw, dtype, config):
    """A word's score is its row times the vector: doubling the row doubles that score and no other."""
    weights, tokens = draw.weights(config), draw.tokens(config.n_vocab, 2, 2)
    word = config.n_vocab - 2
    head = weights["lm_head.weight"].clone()
    head[word] *= 2
    others = torch.arange(config.n_vocab, device=head.device) != word
    with torch.no_grad():
        logits = build(config, weights)(tokens)
        longer = build(config, weights | {"lm_head.weight": head})(tokens)
    same(logits.shape[-1], config.n_vocab, "scores of a position")
    same(longer[..., others], logits[..., others], "the other words' scores")
    within = 2 * probe.logits_bound(config, weights, tokens, dtype)
    close(
        longer[..., word],
        2 * exact64(logits[..., word]),
        2 * within,
        "the score of that word",
    )
    # Their similarity, the cosine, is what it was: the search would not have noticed.
    cosine = F.cosine_similarity(exact64(head[word]), exact64(weights["lm_head.weight"][word]), dim=0)
    close(cosine, 1.0, 1e-9, "the cosine of the old row and the new one")


@claim(
    "lm-head.lookup-is-no-search",
    needs=None,
    source="refresher §13",
    erratum="the document says that a lookup is what the comparison collapses to for a single token; "
    "measured: comparing a row with its own table finds that row for a quarter of 1,000 words",
)
@pytest.mark.parametrize("d, low, high", [(8, 0.0, 0.5), (64, 0.98, 1.0)])
def test_comparing_a_row_with_its_table_is_no_lookup(draw, d, low, high):
    """Looking a token up is a one-hot row times the table; comparing its row with all rows is not."""
    table, words = exact64(draw(1000, d)), torch.arange(1000)
    one_hot = F.one_hot(words, 1000).to(torch.float64)
    same(one_hot @ table, table[words], "the lookup as a product")
    scores = table @ table.mT
    found = float((scores.argmax(-1) == words).to(torch.float64).mean())
    # 1,000 random rows: the share found varies by about 0.015 around 0.24 in 8 dimensions, and is within
    # 0.002 of 1 in 64: either band is more than 8 standard deviations wide.
    between(found, low, high, "share of words whose own row scores highest")
    rest = (scores * (1 - one_hot)).abs().max(-1).values
    at_least(rest, 0.1, "the largest score of another word, which a lookup leaves at 0")


@claim("lm-head.tying-shares-one-table", needs="Transformer", source="refresher §13")
def test_tying_uses_one_table_in_both_directions(build, draw, dtype):
    """Tied, the embedding's rows are the head's; untied, each table is its own."""
    weights, tokens = draw.weights(SMALL), draw.tokens(SMALL.n_vocab, 2, 6)
    table = weights["model.embed_tokens.weight"]
    one_table = weights | {"lm_head.weight": table}
    with torch.no_grad():
        loaded, two = build(SMALL.but(tie_embeddings=True), one_table), build(SMALL, one_table)
        tied, doubled, apart = loaded(tokens), two(tokens), build(SMALL, weights)(tokens)
    within = 2 * probe.logits_bound(SMALL, one_table, tokens, dtype)
    close(tied, doubled, within, "scores of a tied model, against an untied one with the same table twice")
    at_least(
        gap(apart, doubled), min(2 * within, 0.2), "the move of an untied model's scores with another head"
    )
    spared = measure.n_parameters(two) - measure.n_parameters(loaded)
    same(spared, table.numel(), "parameters that a tied model still spares once loaded")


def tie_table(make):
    """Llama-3-8B's parameters with two tables and with one, from models on meta."""

    def model(tied, n_layers=1):
        return make(LLAMA_3_8B.but(n_layers=n_layers, tie_embeddings=tied))

    alone = {tied: model(tied) for tied in (False, True)}
    with torch.no_grad():
        for one_layer in alone.values():
            one_layer(torch.zeros(1, 1, dtype=torch.int64, device="meta"))
    block = measure.n_parameters(model(False, 2)) - measure.n_parameters(alone[False])
    total = {tied: measure.n_parameters(m) + (LLAMA_3_8B.n_layers - 1) * block for tied, m in alone.items()}
    return Table(
        "Llama-3-8B's two tables",
        ("part or arrangement", "tables", "document", "measured"),
        (
            ("one table (n_vocab x d_model)", "-", "525.3M", total[False] - total[True]),
            ("one block (attention + FFN)", "-", "218.1M", block),
            ("32 blocks", "-", "6.979B", LLAMA_3_8B.n_layers * block),
            ("untied (separate matrices)", "2", "8.030B", total[False]),
            ("tied (one shared matrix)", "1", "7.505B", total[True]),
        ),
        "Measured counts the norms' gains as well: 8,192 a block, 4,096 at the end.",
    )


@claim(
    "lm-head.tying-saves-one-table",
    needs="Transformer",
    on="meta",
    source="refresher §13",
)
def test_tying_saves_one_table(impl, receipt):
    """Untied, an 8B Llama counts 8.030B; tied it would count 7.505B, one table of 525M fewer."""
    table = tie_table(lambda c: impl.Transformer(c, device="meta", dtype=torch.bfloat16))
    receipt(table)
    measured = [row[-1] for row in table.rows]
    same(measured, [TABLE, 218112000, 32 * 218112000, N, N - TABLE], "numbers by part")
    # The advertised 8.03B tells which arrangement it is.
    at_most(abs(measured[3] / 1e9 - 8.03), 0.005, "distance of the untied count to 8.03B")
    at_least(abs(measured[4] / 1e9 - 8.03), 0.5, "distance of the tied count to 8.03B")


@claim("lm-head.tables-are-an-eighth", needs=None, source="refresher §13")
@pytest.mark.parametrize(
    "value, low, high",
    [(100 * TABLE / N, 6.45, 6.55), (100 * 2 * TABLE / N, 13.0, 13.1),
     (100 * (1 - 2 * TABLE / N), 86.5, 87.5), (128256 * 4 / 1e3, 512.5, 513.5),
     (4096 * 128256 * 4 / 1e9, 2.05, 2.15)],
    ids=["one-table-%", "two-tables-%", "blocks-%", "KB-a-token", "GB-of-logits"],
)  # fmt: skip
def test_tables_hold_an_eighth_of_an_8b_model(value, low, high):
    """Each table is 6.5% of 8.03B, both are 13%, and one token's scores in float32 are 513 KB."""
    between(value, low, high, "a share in percent, or a size")


def shares_table(make):
    """The head's part of parameters and of FLOPs, measured by leaving most of the vocabulary out."""
    tokens = torch.zeros(1, 1, dtype=torch.int64, device="meta")

    def counted(**changes):
        with torch.no_grad():
            return measure.flops(lambda: make(LLAMA_3_8B.but(n_layers=1, **changes))(tokens))

    all_words, one_word = counted(), counted(n_vocab=1)
    per_block = one_word - 2 * LLAMA_3_8B.d_model
    head = (all_words - one_word) * LLAMA_3_8B.n_vocab // (LLAMA_3_8B.n_vocab - 1)
    total = head + LLAMA_3_8B.n_layers * per_block
    return Table(
        "The head's share of Llama-3-8B, one token",
        ("what", "document", "measured"),
        (
            ("parameters of the head", "6.5%", f"{100 * TABLE / N:.2f}%"),
            ("GFLOP of the head", "1.05", f"{head / 1e9:.3f}"),
            ("GFLOP of the model", "16.1", f"{total / 1e9:.2f}"),
            ("FLOPs of the head", "6.5%", f"{100 * head / total:.2f}%"),
        ),
        "Looking a row of the embedding up multiplies nothing.",
    )


@claim(
    "lm-head.flops-share",
    needs="Transformer",
    on="meta",
    source="refresher §13",
    erratum="the document says that the head's 6.5% of the FLOPs is exactly its share of the parameters; "
    "measured 7.00%, since the embedding's parameters cost no FLOPs",
)
def test_head_costs_more_than_its_share_of_parameters(impl, receipt):
    """The head is 6.5% of the parameters but 7.0% of the FLOPs: the embedding multiplies nothing."""
    table = shares_table(lambda c: impl.Transformer(c, device="meta", dtype=torch.bfloat16))
    receipt(table)
    same([row[-1] for row in table.rows], ["6.54%", "1.051", "15.01", "7.00%"], "the head's part")


def figure_table():
    """The drawn scores as shares of the drawn words, and of a whole vocabulary whose rest scores 0."""
    words = ("mat", "floor", "table", "cat", "zebra")
    scores = torch.tensor([8.4, 7.2, 6.9, 4.1, -1.0], dtype=torch.float64)
    document = ("65.0%", "19.6%", "14.5%", "0.9%", "0.0%")
    five, all_words = scores.softmax(0), torch.cat((scores, torch.zeros(128251).double())).softmax(0)
    rows = tuple(
        (word, f"{float(s):+.1f}", said, f"{100 * float(a):.1f}%", f"{100 * float(b):.2f}%")
        for word, s, said, a, b in zip(words, scores, document, five, all_words[:5], strict=True)
    )
    columns = ("word", "score", "document", "of these five", "of 128,256, rest at 0")
    return Table("Scores to shares", columns, rows)


@claim(
    "lm-head.scores-to-shares",
    needs=None,
    source="refresher §13",
    erratum="the document's figure gives 65.0% to the top word over a vocabulary of 128,256; computed: "
    "that is a softmax over the five words drawn, and with the other scores at 0 the word gets 3.3%",
)
def test_softmax_turns_scores_into_shares(draw, receipt):
    """Softmax turns unbounded scores into shares of 100%, by their differences alone."""
    table = figure_table()
    receipt(table)
    scores = 10 * exact64(draw(4, SMALL.n_vocab))
    shares, eps = scores.softmax(-1), torch.finfo(torch.float64).eps
    close(shares.sum(-1), torch.ones(4), SMALL.n_vocab * eps, "the sum of the shares")
    # Adding 1000 rounds each score by up to half a spacing at 1024; shares move by about twice that.
    close((scores + 1000).softmax(-1), shares, 4 * 1024 * eps, "shares after adding 1000 to every score")
    same([row[3] for row in table.rows], [row[2] for row in table.rows], "shares of the five drawn words")
    same(table.rows[0][4], "3.29%", "the top word's share of a whole vocabulary")


@claim("lm-head.chunked-loss", needs=None, source="refresher §6, §13")
@pytest.mark.parametrize("n_chunks", [2, 5, 20])
def test_loss_may_be_computed_group_by_group(draw, n_chunks):
    """A loss over groups of positions, one after another, is the loss of all, with the same gradients."""
    from torch.utils.checkpoint import checkpoint

    h, head = exact64(draw(20, 12)), exact64(draw(31, 12))
    labels = draw.tokens(31, 20)
    h.requires_grad_()
    head.requires_grad_()

    def group(h, labels):
        return F.cross_entropy(h @ head.mT, labels, reduction="sum")

    whole = group(h, labels) / 20
    parts = zip(h.chunk(n_chunks), labels.chunk(n_chunks), strict=True)
    held = []

    def by_groups():
        # Each group's scores are made again on the way back, so that no more than one group's ever exist.
        losses = (checkpoint(group, *part, use_reentrant=False) for part in parts)
        held.append(sum(losses) / 20)

    kept = measure.saved(by_groups)
    eps = torch.finfo(torch.float64).eps
    close(held[0], whole, 20 * 31 * eps * float(whole.detach()), "the loss by groups")
    for name, ours, all_at_once in zip(
        ("the vectors", "the head"), gradients(held[0], h, head), gradients(whole, h, head), strict=True
    ):
        close(ours, all_at_once, 20 * 31 * eps, f"the gradient to {name}")
    same(max(t.numel() for t in kept) <= head.numel(), True, "whether no kept tensor is larger than the head")


@pytest.mark.receipts("lm-head")
def test_receipts(receipt, made):
    def make(config):
        return refimpl.Transformer(config, device="meta", dtype=torch.bfloat16)

    receipt(
        made("Llama-3-8B's two tables", lambda: tie_table(make)),
        made("The head's share of Llama-3-8B, one token", lambda: shares_table(make)),
        figure_table(),
    )
