"""Serving: a fixed bill for the weights, a growing one for the cache, and a clock that bandwidth sets.

Every new token reads all weights and the whole cache once. So the cache decides how many sequences a card
can hold, bytes decide how fast one of them grows, and batching decides how much of that traffic is shared.
"""

import pytest
import torch

from harness import Table, at_least, at_most, between, claim, close, configs, measure, same, sizes
from refimpl import LLAMA_2_7B, LLAMA_3_8B, ModelConfig, cost
from refimpl.hardware import A100, CARDS, H100, HIDDEN_ALLOWANCE, USABLE, seconds, sequences

GIB, KIB = 2**30, 2**10
CONTEXTS = {"8k": 8192, "32k": 32768, "128k": 131072}

# No two counts coincide, and d_model is a multiple of n_heads, which some libraries ask for.
TINY = ModelConfig(n_vocab=61, d_model=48, n_layers=3, n_heads=6, n_kv_heads=2, d_head=10, d_ff=56)

# The 7B shape with 32 key/value heads, with 8 and with one.
SHARED = {"MHA": 32, "GQA": 8, "MQA": 1}

# What norms and one embedding row may add to the traffic of the matrices: a part in a thousand.
ASIDE = 1e-3


def maker(impl, device, dtype=torch.bfloat16):
    return lambda config: impl.Transformer(config, device=device, dtype=dtype)


def reference(config):
    import refimpl

    return refimpl.Transformer(config, device="meta", dtype=torch.bfloat16)


def blank(batch, n):
    return torch.zeros(batch, n, dtype=torch.int64, device="meta")


# --- weights ------------------------------------------------------------------------------------------


def weigh(make, config):
    """Bytes of a model's parameters at full depth."""
    return measure.at_depth(
        lambda c: sum(p.nbytes for p in measure.parameters(make(c)).values()), config
    )  # fmt: skip


def weights_table(make):
    """Llama-3-8B in each format; make(dtype) makes a model of it. Integers are the count times their width,
    and int4 with an fp16 scale for every 32 weights takes half a bit more for each."""
    n = cost.n_parameters(LLAMA_3_8B)
    found = {
        "fp32": ("4", "32.1 GB", weigh(make(torch.float32), LLAMA_3_8B)),
        "bf16": ("2", "16.1 GB", weigh(make(torch.bfloat16), LLAMA_3_8B)),
        "fp16": ("2", "16.1 GB", weigh(make(torch.float16), LLAMA_3_8B)),
        "int8": ("1", "8.0 GB", n),
        "int4": ("0.5", "4.0 GB", n / 2),
        "int4 with scales": ("0.5", "4.0 GB", n * 4.5 / 8),
    }
    rows = [(name, each, document, f"{size / 1e9:.2f} GB") for name, (each, document, size) in found.items()]
    return Table("Weights of Llama-3-8B", ("stored as", "bytes each", "document", "measured"), tuple(rows))


@claim(
    "serving.weights",
    needs="Transformer",
    on="meta",
    source="refresher, short version, §6",
    erratum="the refresher has 4.0 GB for int4, half a byte each; stored with an fp16 scale for every 32 "
    "weights, as 4-bit formats are, they take 4.5 GB",
)
def test_weights_take_two_bytes_each_in_16_bit(impl, device, receipt):
    """An 8B model weighs 32.1 GB in fp32 and 16.1 GB in 16 bit: its count times the width of a number."""

    def make(dtype):
        return maker(impl, device, dtype)

    with torch.no_grad():
        make(torch.float32)(LLAMA_3_8B.but(n_layers=1))(blank(1, 2))
    table = weights_table(make)
    receipt(table)
    sizes = {name: float(size.split()[0]) for name, _, _, size in table.rows}
    close(sizes["fp32"], 32.12, 0.01, "GB in fp32")
    close([sizes["bf16"], sizes["fp16"]], [16.06, 16.06], 0.01, "GB in bf16 and fp16")
    at_least(sizes["int4 with scales"], 4.5, "GB in int4 with its scales, more than 4.0")


# --- the cache ------------------------------------------------------------------------------------------


def cache_after(model, *chunks):
    """The cache's bytes after each chunk of tokens."""
    cache, sizes = model.new_cache(), []
    with torch.no_grad():
        for tokens in chunks:
            model(tokens, cache)
            sizes.append(cache.nbytes)
    return sizes


@claim(
    "serving.cache-bytes",
    needs="Transformer",
    source="refresher §6, §7; whiteboard, The KV cache",
)
@pytest.mark.parametrize(
    "sizes",
    [
        {"n_kv_heads": 6},
        {"n_kv_heads": 2},
        {"n_kv_heads": 1},
        {"n_kv_heads": 3, "n_layers": 2, "d_head": 14},
    ],
    ids=["MHA", "GQA", "MQA", "another shape"],
)
def test_cache_holds_a_key_and_a_value_for_each_token_layer_and_kv_head(build, draw, dtype, sizes):
    """A token's cache is one key and one value for each layer and key/value head, and nothing else."""
    config = TINY.but(**sizes)
    a_token = 2 * config.n_layers * config.n_kv_heads * config.d_head * dtype.itemsize
    same(cost.cache_bytes_per_token(config, dtype.itemsize), a_token, "the closed form")
    tokens = draw.tokens(config.n_vocab, 2, 11)
    found = cache_after(build(config), tokens[:, :7], tokens[:, 7:8], tokens[:, 8:])
    same(found, [2 * n * a_token for n in (7, 8, 11)], "bytes after 7, 8 and 11 tokens in two rows")


@claim(
    "serving.cache-in-16-bit",
    needs="Transformer",
    dtypes=("bfloat16", "float16"),
    source="refresher §6; whiteboard, The KV cache",
)
def test_16_bit_model_keeps_a_16_bit_cache(build, draw):
    """A 16-bit model caches two bytes for each number, half of what a float32 cache takes."""
    found = cache_after(build(TINY), draw.tokens(TINY.n_vocab, 1, 5))
    same(found, [5 * 2 * 3 * 2 * 10 * 2], "bytes after 5 tokens: 2 tensors, 3 layers, 2 heads of 10")


@claim(
    "serving.cache-grows-linearly",
    needs="Transformer",
    on="meta",
    source="whiteboard, The KV cache, How to say it; refresher §6",
)
def test_cache_of_four_times_the_tokens_takes_four_times_the_bytes(impl, device):
    """From 8,192 to 32,768 tokens the scores grow 16-fold and the cache only 4-fold."""
    model = maker(impl, device)(LLAMA_2_7B.but(n_layers=1, n_vocab=64, d_ff=64))
    eight, thirty_two = cache_after(model, blank(1, 8192), blank(1, 3 * 8192))
    at_least(eight, 1, "bytes after 8,192 tokens")
    same(thirty_two, 4 * eight, "bytes after 32,768 tokens")
    layer = LLAMA_2_7B.but(n_layers=1)
    same(cost.score_flops(layer, 32768, 32768) / cost.score_flops(layer, 8192, 8192), 16.0, "the scores'")


def cache_table(make):
    """Bytes of cache for a token, and for the contexts that the documents ask about."""
    printed = {
        "MHA": ("512 KiB", "2.0 GB", "4 GiB"),
        "GQA": ("128 KiB", "0.5 GB", "1.00 GiB"),
        "MQA": ("16 KB", "-", "-"),
    }
    rows = []
    for name, (token, at_4096, at_8192) in printed.items():
        config = LLAMA_2_7B.but(n_kv_heads=SHARED[name])
        one = measure.at_depth(lambda c: cache_after(make(c), blank(1, 1))[0], config)
        rows.append(
            (name, SHARED[name], token, f"{one / KIB:g} KiB", at_4096, f"{4096 * one / GIB:g} GiB",
             f"{4096 * one / 1e9:.3f} GB", at_8192, f"{8192 * one / GIB:g} GiB")
        )  # fmt: skip
    columns = (
        "", "kv heads", "a token (document)", "a token", "4,096 tokens (document)", "4,096 tokens",
        "in decimal", "8,192 tokens (document)", "8,192 tokens",
    )  # fmt: skip
    return Table("16-bit cache of 32 layers with heads of 128", columns, tuple(rows))


@claim(
    "serving.cache-by-kv-heads",
    needs="Transformer",
    on="meta",
    source="refresher, short version, §6; whiteboard, The KV cache, How to say it",
    erratum="the whiteboard writes KB and GB beside MB of 10^6 bytes; its 512 KB and 2.0 GB are KiB and GiB, "
    "524.3 kB and 2.147 GB in the decimal units that cards are sold in",
)
def test_sharing_kv_heads_divides_the_cache(impl, device, receipt):
    """8 of 32 key/value heads make the cache 4 times smaller and one makes it 32 times: 128 and 16 KiB."""
    table = cache_table(maker(impl, device))
    receipt(table)
    found = {row[0]: row for row in table.rows}
    same([found[name][3] for name in SHARED], ["512 KiB", "128 KiB", "16 KiB"], "a token's cache")
    same([found[name][8] for name in SHARED], ["4 GiB", "1 GiB", "0.125 GiB"], "the cache of 8,192 tokens")
    same(found["MHA"][6], "2.147 GB", "4,096 tokens' 2.0 GB in decimal units")


# --- what fits ------------------------------------------------------------------------------------------

WEIGHTS = 2 * cost.n_parameters(LLAMA_3_8B)  # in bf16
A_TOKEN = cost.cache_bytes_per_token(LLAMA_3_8B, 2)


def concurrency_table():
    """How many sequences of Llama-3-8B one card holds beside the weights: as the document prints it, with
    the allowance that its figures need, and without; and with 77 taken as GiB, nearer to what such cards
    report (79.1 to 79.3 GiB)."""
    rooms = (USABLE - WEIGHTS - HIDDEN_ALLOWANCE, USABLE - WEIGHTS, 77 * GIB - WEIGHTS - HIDDEN_ALLOWANCE)
    rows = [("left for the cache", "58 GB", *(f"{room / 1e9:.2f} GB" for room in rooms)),
            ("tokens", "~442k", *(f"{room / A_TOKEN / 1e3:.0f}k" for room in rooms))]  # fmt: skip
    for (name, n), document in zip(CONTEXTS.items(), ("~54", "~13", "~3"), strict=True):
        rows.append((f"sequences of {name}", document, *(str(sequences(r, A_TOKEN, n)) for r in rooms)))
    columns = ("", "document", "3 GB held back", "nothing held back", "77 GiB, 3 GB held back")
    return Table("One 80 GB card, 77 GB usable, 16.1 GB of weights", columns, tuple(rows))


@claim(
    "serving.concurrency",
    needs=None,
    source="refresher §6",
    erratum="the refresher leaves 58 GB of 77 beside 16.1 GB of weights, and 54 sequences of 8k; 60.9 GB are "
    "left, and 58 holds back 3 GB nowhere mentioned; 53.96 sequences are 53 whole ones, 56 without the 3 GB",
)
def test_room_left_by_the_weights_holds_53_sequences(receipt):
    """A 77 GB budget leaves 60.9 GB beside the weights; with 3 GB held back, 53 sequences of 8k fit."""
    table = concurrency_table()
    receipt(table)
    found = {row[0]: row[1:] for row in table.rows}
    same(found["left for the cache"][:3], ("58 GB", "57.94 GB", "60.94 GB"), "room for the cache")
    same(found["tokens"][1], "442k", "tokens with 3 GB held back")
    same(found["sequences of 8k"][1:], ("53", "56", "59"), "sequences of 8k, not 54")
    same(found["sequences of 32k"][1:3], ("13", "14"), "sequences of 32k")
    same(found["sequences of 128k"][1:3], ("3", "3"), "sequences of 128k")


@claim(
    "serving.gqa-concurrency",
    needs=None,
    source="whiteboard, The KV cache",
    erratum="the whiteboard says that a cache 4 times smaller is a 4x concurrency gain; whole sequences of "
    "4,096 go from 4 to 19 on a 24 GB card (4.75x) and from 30 to 123 on an 80 GB card (4.1x)",
)
@pytest.mark.parametrize("memory, full, grouped", [(24e9, 4, 19), (80e9, 30, 123)])
def test_smaller_cache_multiplies_the_sequences_that_fit(memory, full, grouped):
    """With a quarter of the cache, four times the sequences fit or more, since only whole ones count."""
    room = memory - 2 * cost.n_parameters(LLAMA_2_7B)
    shapes = (LLAMA_2_7B, LLAMA_2_7B.but(n_kv_heads=8))
    found = tuple(sequences(room, cost.cache_bytes_per_token(c, 2), 4096) for c in shapes)
    same(found, (full, grouped), f"sequences of 4,096 beside the weights on {memory / 1e9:.0f} GB")
    same(found[1] == 4 * found[0], False, "exactly 4 times")


@claim(
    "serving.cache-outgrows-the-weights",
    needs=None,
    source="refresher, short version, §6",
    erratum="the refresher says that at long context the cache binds and not the weights; of one sequence's "
    "bytes the weights are the larger part up to 122,532 tokens: it is many sequences that bind",
)
def test_cache_passes_the_weights_at_122k_tokens():
    """All sequences together outweigh Llama-3-8B's weights from 122,532 tokens on: 15 sequences of 8k."""
    same(WEIGHTS // A_TOKEN, 122_532, "tokens whose cache weighs as much as the weights")
    for n, several in ((8192, 15), (32768, 4), (131072, 1)):
        same(-(-WEIGHTS // (A_TOKEN * n)), several, f"sequences of {n} that outweigh the weights")


def verdicts_table():
    """What one 80 GB card, 77 GB usable, can do with Llama-3-8B."""
    n = cost.n_parameters(LLAMA_3_8B)
    tasks = (
        ("bf16 inference", "yes, easily", 2 * n),
        ("with one 8k sequence", "yes", 2 * n + 8192 * A_TOKEN),
        ("int8 inference", "yes, very easily", n),
        ("int4 inference", "yes, very easily", n / 2),
        ("training state of AdamW, 16 bytes each", "no", 16 * n),
        ("8-bit AdamW and an fp32 master copy, 10 bytes", "borderline", 10 * n),
        ("8-bit AdamW, no master copy, 6 bytes", "borderline", 6 * n),
    )
    rows = [(task, document, f"{size / 1e9:.1f} GB", size <= USABLE) for task, document, size in tasks]
    return Table("Llama-3-8B on one 80 GB card", ("task", "document", "takes", "fits 77 GB"), tuple(rows))


@claim(
    "serving.verdict-table",
    needs=None,
    source="refresher, short version, §6",
    erratum="the refresher calls fine-tuning with offload and an 8-bit optimizer borderline; without a "
    "master copy 48.2 GB fit and need no offload, and with one 80.3 GB do not fit",
)
def test_one_card_serves_an_8b_model_and_cannot_train_it(receipt):
    """One 80 GB card serves an 8B model in 4 to 16 GB and cannot hold the 128 GB of its training state."""
    table = verdicts_table()
    receipt(table)
    found = {task: (size, fits) for task, _, size, fits in table.rows}
    same(found["bf16 inference"], ("16.1 GB", True), "bf16 inference")
    same(found["with one 8k sequence"], ("17.1 GB", True), "bf16 inference with one 8k sequence")
    same((found["int8 inference"], found["int4 inference"]), (("8.0 GB", True), ("4.0 GB", True)), "integers")
    same(found["training state of AdamW, 16 bytes each"], ("128.5 GB", False), "training state")
    same(found["8-bit AdamW, no master copy, 6 bytes"], ("48.2 GB", True), "8-bit AdamW: not borderline")
    same(found["8-bit AdamW and an fp32 master copy, 10 bytes"], ("80.3 GB", False), "with a master copy")


# --- how fast it generates ------------------------------------------------------------------------------


def step(make, config, batch=1, n=1):
    """A pass over n tokens in each of batch rows: its FLOPs, and the bytes of parameters that it reads."""
    model, tokens, read = make(config), blank(batch, n), []
    with torch.no_grad():
        flops = measure.flops(lambda: read.append(measure.reads(lambda: model(tokens), model)))
    return flops, read[0]


@claim(
    "serving.step-reads-weights-once",
    needs="Transformer",
    on="meta",
    source="refresher §6",
    erratum="the refresher says that a step reads every weight; of the embedding it reads one row: 15.01 GB "
    "of Llama-3-8B's 16.06, so 223 tokens a second on an H100 instead of 209",
)
def test_decode_step_reads_each_matrix_once(impl, device):
    """A step of one token reads each matrix exactly once, and one row of the embedding."""
    found, _ = measure.at_depth(lambda c: step_and_cache(maker(impl, device), c), LLAMA_3_8B)
    matrices = 2 * cost.matmul_parameters(LLAMA_3_8B)
    same(matrices, 15_009_316_864, "bytes of the matrices in bf16")
    between(found, matrices, (1 + ASIDE) * matrices, "bytes of weights that a step reads")
    at_most(found / weigh(maker(impl, device), LLAMA_3_8B), 0.94, "of all weights")
    close(H100.bandwidth / matrices, 223.2, 0.1, "steps a second on an H100 at full bandwidth")


def intensity_table(make):
    """FLOPs for each byte of weights, by the tokens that share a pass (an 8B block, without the tables)."""
    config, rows = LLAMA_3_8B.but(n_layers=1, n_vocab=64), []
    for what, batch, n in PASSES:
        flops, read = step(make, config, batch, n)
        bound = [("compute" if flops / read > card.ridge else "memory") for card in (A100, H100)]
        rows.append((what, batch * n, round(flops / 1e9, 2), round(read / 1e9, 4), flops / read, *bound))
    columns = ("pass", "tokens", "GFLOPs", "GB of weights", "FLOP/byte", "A100 waits for", "H100 waits for")
    return Table("What a pass does with each byte of one layer's weights", columns, tuple(rows))


PASSES = (
    ("decode", 1, 1),
    ("decode, batch 64", 64, 1),
    ("prompt of 100", 1, 100),
    ("prompt of 1,000", 1, 1000),
    ("decode, batch 512", 512, 1),
)


@claim("serving.batching-intensity", needs="Transformer", on="meta", source="refresher §6")
@pytest.mark.parametrize("batch", [2, 64])
def test_batch_reads_each_weight_once_for_all_its_rows(impl, device, batch):
    """A batch of 64 reads each weight once and spends it on 64 tokens: 64 times the FLOPs for each byte."""
    make, config = maker(impl, device), LLAMA_3_8B.but(n_layers=1)
    (flops, one), (all_flops, read) = step(make, config), step(make, config, batch)
    close(all_flops, batch * flops, ASIDE * batch * flops, f"FLOPs of {batch} rows")
    between(read, one, (1 + ASIDE) * one, f"bytes of weights that {batch} rows read")


@claim(
    "serving.prefill-is-compute-bound",
    needs="Transformer",
    on="meta",
    source="whiteboard, Which mask makes it a chat model; refresher §6",
    erratum="the whiteboard says that prefill is compute-bound and decode memory-bound; what counts is the "
    "tokens in a pass: a prompt of 100 still waits for memory on an A100, and 512 rows of decode do not",
)
def test_tokens_in_a_pass_decide_what_binds(impl, device, receipt):
    """A pass does about one FLOP a byte of 16-bit weights for each token in it, prompt or batch alike."""
    table = intensity_table(maker(impl, device))
    receipt(table)
    found = {row[0]: row[1:] for row in table.rows}
    for what, (tokens, _, _, intensity, _, _) in found.items():
        # Scores come on top, 4 n^2 d, and need no weights: at 1,000 tokens some 4% more. The embedding's
        # rows, one a token, are 1% more bytes in a model of one layer.
        between(intensity / tokens, 0.98, 1.06, f"FLOPs a byte and token: {what}")
    same(found["decode"][-2:], ("memory", "memory"), "what one token waits for, on an A100 and an H100")
    same(found["prompt of 1,000"][-2:], ("compute", "compute"), "what a prompt of 1,000 waits for")
    same(found["prompt of 100"][-2:], ("memory", "memory"), "what a short prompt waits for")
    same(found["decode, batch 512"][-2:], ("compute", "compute"), "what a large batch waits for")


def roofline_table():
    """Tokens a second of Llama-3-8B in bf16 at batch 1, by arithmetic alone and by traffic alone."""
    n = cost.n_parameters(LLAMA_3_8B)
    printed = {A100: ("19,427", "127", "153x"), H100: ("61,644", "209", "296x")}
    rows = []
    for card in CARDS:
        math, memory = card.compute / (2 * n), card.bandwidth / (2 * n)
        document = printed.get(card, ("-", "-", "-"))
        found = (f"{math:,.0f}", f"{memory:,.0f}", f"{math / memory:.0f}x")
        pairs = [cell for pair in zip(document, found, strict=True) for cell in pair]
        rows.append((f"{card.name} {card.variant}", *pairs))
    columns = (
        "card", "compute-bound (document)", "compute-bound", "bandwidth-bound (document)", "bandwidth-bound",
        "gap (document)", "gap",
    )  # fmt: skip
    return Table("Tokens a second of an 8B model at batch 1", columns, tuple(rows))


def cards_table():
    """The cards as sold; the document prints the SXM variants and does not say so."""
    printed = {A100: ("2.04 TB/s", "312 TFLOP/s"), H100: ("3.35 TB/s", "990 TFLOP/s")}
    rows = [
        (card.name, card.variant, f"{card.memory / 1e9:g} GB", *printed.get(card, ("-", "-")),
         f"{card.bandwidth / 1e12:g} TB/s", f"{card.compute / 1e12:g} TFLOP/s", card.source)
        for card in CARDS
    ]  # fmt: skip
    columns = (
        "card", "variant", "memory", "bandwidth (document)", "BF16 (document)", "bandwidth", "BF16", "source"
    )  # fmt: skip
    return Table("Two cards", columns, tuple(rows))


@claim(
    "serving.decode-is-memory-bound",
    needs=None,
    source="refresher §6",
    erratum="the refresher prints 61,644 tokens a second and 296x, from a rounded N and 990 TFLOP/s; 989.4 "
    "and the exact N give 61,604 and 295x, on SXM cards: on PCIe ones 47,072 and 378x. The gap is the "
    "card's FLOPs a byte, and says nothing of the model",
)
def test_bandwidth_sets_the_pace_of_decoding(receipt):
    """At batch 1 a card could compute 153 to 296 tokens while it reads the weights for one."""
    table = roofline_table()
    receipt(table, cards_table())
    found = {row[0]: (row[2], row[4], row[6]) for row in table.rows}
    same(found["A100 80GB SXM"], ("19,427", "127", "153x"), "an A100")
    same(found["H100 80GB SXM"], ("61,604", "209", "295x"), "an H100")
    same(f"{990e12 / (2 * cost.n_parameters(LLAMA_3_8B)):,.0f}", "61,642", "an H100 of 990 TFLOP/s")
    same(found["H100 80GB PCIe"], ("47,072", "125", "378x"), "an H100 on PCIe")
    for config in (LLAMA_3_8B, LLAMA_2_7B):
        n = cost.n_parameters(config)
        floor, math = seconds(H100, 2 * n, 2 * n), 2 * n / H100.compute
        close(floor / math, H100.ridge, 1e-9 * H100.ridge, "the gap against the card's FLOPs a byte")
        close(math / floor, 0.00339, 1e-5, "the part of the time that it computes: 0.3%")
    close(1e3 * seconds(H100, 2 * n, WEIGHTS), 4.79, 0.01, "ms for Llama-3-8B's weights to come in")


@claim("serving.gap-widens", needs=None, source="refresher §6")
def test_newer_card_gains_more_compute_than_bandwidth():
    """From A100 to H100 compute grows 3.2 times and bandwidth 1.6 times, so the gap about doubles."""
    close(H100.compute / A100.compute, 3.17, 0.005, "compute")
    close(H100.bandwidth / A100.bandwidth, 1.64, 0.005, "bandwidth")
    close(H100.ridge / A100.ridge, 1.93, 0.005, "FLOPs that a byte must pay for")


def step_and_cache(make, config):
    """Bytes of parameters that a step of one token reads, and bytes of the cache that it leaves."""
    model = make(config)
    cache = model.new_cache()
    with torch.no_grad():
        read = measure.reads(lambda: model(blank(1, 1), cache), model)
    return read, cache.nbytes


def step_table(make):
    """Bytes that a step at batch 1 reads, with the cache of what came before, and what they allow."""
    rows = []
    for name, config, lengths in (("7B, MHA", LLAMA_2_7B, (0, 4096, 32768)),
                                  ("8B, GQA", LLAMA_3_8B, (0, 8192, 131072))):  # fmt: skip
        weights, a_token = measure.at_depth(lambda c: step_and_cache(make, c), config)
        for n in lengths:
            cache = n * a_token
            speed = H100.bandwidth / (weights + cache)
            rows.append((name, n, f"{weights / 1e9:.2f} GB", f"{cache / 1e9:.2f} GB",
                         f"{100 * cache / weights:.0f}%", f"{speed:.0f}"))  # fmt: skip
    columns = ("model", "tokens before", "weights", "cache", "cache of weights", "tokens/s on an H100")
    return Table("Bytes that one decode step reads", columns, tuple(rows))


@claim(
    "serving.step-reads-the-cache-too",
    needs="Transformer",
    on="meta",
    source="whiteboard, One block; refresher §6",
    erratum="both documents turn the parameter count directly into decode speed; the step reads the cache "
    "too, which at 4,096 tokens adds 16% to a 7B model with full heads and at 32K more than doubles it",
)
def test_cache_adds_to_the_bytes_of_a_step(impl, device, receipt):
    """A decode step reads the weights and all of the cache, so it slows down as the context grows."""
    table = step_table(maker(impl, device))
    receipt(table)
    found = {row[:2]: row[4:] for row in table.rows}
    same(found["7B, MHA", 4096][0], "16%", "the cache of 4,096 tokens against the weights")
    same(found["7B, MHA", 32768][0], "130%", "the cache of 32,768 tokens against the weights")
    speeds = [int(found["8B, GQA", n][1]) for n in (0, 8192, 131072)]
    same(speeds, [223, 208, 104], "tokens a second on an H100 after 0, 8,192 and 131,072 tokens")


# --- any model ------------------------------------------------------------------------------------------

# Models on which the tables of any model are locked: windows and tied tables, then latents and experts.
ANY = ("gemma-2-9b", "deepseek-v3")


def model_cache_table(s):
    """The cache of one sequence. A layer with a window may let go of what is out of its sight."""
    rows = [
        (n, *(amount(size) for size in (sizes.cache_bytes(s, n), sizes.cache_bytes(s, n, windowed=False))),
         amount(sizes.cache_bytes(s, n, 1)))
        for n in sizes.contexts(s)
    ]  # fmt: skip
    columns = ("tokens", "in 16 bits", "if windows let nothing go", "in 8 bits")
    return Table(f"Cache of {s.name}", columns, tuple(rows), "; ".join(s.notes))


def amount(n_bytes):
    """Bytes in decimal units."""
    for unit, name in ((1e9, "GB"), (1e6, "MB"), (1e3, "kB")):
        if n_bytes >= unit:
            return f"{n_bytes / unit:.2f} {name}"
    return f"{n_bytes:g} B"


@claim("serving.model-cache", needs=None, source="refresher §6; whiteboard, The KV cache")
def test_cache_of_any_model_grows_with_its_layers_until_their_windows(model, receipt):
    """A token adds a key and a value a kv head, or a latent, in each layer whose window is not yet full."""
    s = model
    shapes = [(2, s.n_kv_heads, s.d_head)]
    if s.latent:
        shapes = [(s.latent.kv_rank,), (s.latent.d_rope,)]
    a_layer = sum(torch.empty(shape, dtype=torch.bfloat16, device="meta").nbytes for shape in shapes)
    same(sizes.cache_bytes(s, 1), s.n_layers * a_layer, "bytes of one token")
    for n in sizes.contexts(s):
        growing = sum(w == 0 or n < w for w in s.windows)
        more = sizes.cache_bytes(s, n + 1) - sizes.cache_bytes(s, n)
        same(more, growing * a_layer, f"bytes that one more token adds after {n}")
    receipt(model_cache_table(s))


@claim("serving.model-cache-as-built", needs="Transformer", on="meta", source="refresher §6")
def test_model_built_from_a_config_caches_what_its_sizes_say(impl, device, model):
    """A model built from any config's sizes caches as many bytes a token as the sizes give."""
    config = sizes.as_reference(model).but(n_vocab=64)  # the tables cache nothing
    found = measure.at_depth(lambda c: cache_after(maker(impl, device)(c), blank(1, 1))[0], config)
    same(found, sizes.cache_bytes(model, 1), f"bytes a token of {model.name}")


def budget_table(s, card):
    """What a model's weights leave of a card, less 3 GB for context, workspaces and fragmentation."""
    rows = []
    for name, width in (("fp32", 4), ("bf16", 2), ("int8", 1), ("int4 with scales", 4.5 / 8)):
        weights = sizes.n_parameters(s) * width
        room = card.memory - HELD_BACK - weights
        fits = [str(whole_sequences(s, room, n)) for n in sizes.contexts(s)[1:]]
        cards = -(-weights // (card.memory - HELD_BACK))
        rows.append((name, amount(weights), f"{cards:.0f}", amount(room) if room > 0 else "none", *fits))
    columns = (
        "weights",
        "take",
        "cards to hold them",
        "left on one",
        *(f"sequences of {n:,}" for n in sizes.contexts(s)[1:]),
    )
    return Table(f"{s.name} on one {card.name}", columns, tuple(rows))


HELD_BACK = 80e9 - USABLE


def whole_sequences(s, room, n):
    return max(0, int(room // sizes.cache_bytes(s, n)))


@claim("serving.model-budget", needs=None, source="refresher, short version, §6; whiteboard, The KV cache")
def test_whole_sequences_share_what_the_weights_leave(model, card, receipt):
    """The room beside the weights holds whole sequences: one more than they are would not fit."""
    room = card.memory - HELD_BACK - 2 * sizes.n_parameters(model)
    for n in sizes.contexts(model)[1:]:
        k = whole_sequences(model, room, n)
        at_most(k * sizes.cache_bytes(model, n), max(room, 0), f"bytes of {k} sequences of {n}")
        same((k + 1) * sizes.cache_bytes(model, n) > room, True, "one more is too many")
    receipt(budget_table(model, card))


def rate_table(s, card):
    """The floor under one sequence's decode step: its active matrices, its cache, and its arithmetic."""
    rows = []
    for n in sizes.contexts(s):
        weights, cache = 2 * sizes.matmul_parameters(s), sizes.cache_bytes(s, n)
        floor = step_floor(s, card, n)
        math = sizes.decode_flops(s, n) / card.compute
        rows.append((n, amount(weights), amount(cache), f"{1e3 * floor:.3g} ms", f"{1 / floor:.1f}",
                     f"{100 * math / floor:.1f}%"))  # fmt: skip
    columns = (
        "tokens before",
        "matrices read",
        "cache read",
        "at least",
        "tokens/s at most",
        "of it computing",
    )
    note = "As if it fit on one card. A batch meets more experts than one sequence." if s.experts else ""
    return Table(f"Decoding {s.name} in 16 bits on a {card.name}, one sequence", columns, tuple(rows), note)


def step_floor(s, card, n):
    return seconds(card, sizes.decode_flops(s, n), sizes.step_bytes(s, n))


@claim("serving.model-decode-rate", needs=None, source="refresher §6; whiteboard, One block")
def test_any_model_decodes_more_slowly_behind_a_longer_context(model, card, receipt):
    """A step reads the matrices that its token meets and the whole cache, and takes at least that long."""
    lengths = sizes.contexts(model)
    floors = [step_floor(model, card, n) for n in lengths]
    for n, floor in zip(lengths, floors, strict=True):
        matrices = sizes.step_bytes(model, n) - sizes.cache_bytes(model, n)
        at_most(matrices, 2 * sizes.n_parameters(model, active=True), "bytes of the matrices it meets")
        at_least(
            floor * card.bandwidth, (1 - 1e-9) * sizes.step_bytes(model, n), "bytes that the floor allows"
        )
    same(floors, sorted(floors), "floors in the order of their contexts")
    receipt(rate_table(model, card))


@pytest.mark.receipts("serving")
def test_receipts(receipt, made):
    import refimpl

    receipt(
        weights_table(lambda dtype: lambda c: refimpl.Transformer(c, device="meta", dtype=dtype)),
        made("16-bit cache of 32 layers with heads of 128", lambda: cache_table(reference)),
        concurrency_table(),
        verdicts_table(),
        made(
            "What a pass does with each byte of one layer's weights",
            lambda: intensity_table(reference),
        ),
        cards_table(),
        roofline_table(),
        made("Bytes that one decode step reads", lambda: step_table(reference)),
        *(model_cache_table(configs.read(name)) for name in ANY),
        *(table(configs.read(name), H100) for name in ANY for table in (budget_table, rate_table)),
    )
