"""Cost: what a pass computes and what it holds, in FLOPs and in numbers.

Two things make attention expensive, the width d_model and the number of tokens n; the number of heads only
cuts the same budget into pieces. Weights cost 2 FLOPs a token each, scores cost n squared, and at everyday
lengths the first outweighs the second. What is counted here runs on "meta", in full size and in no time.

A layer may compute the whole n by n square of scores or skip the future, tile by tile: both are right, so
a causal model's scores may cost anything from the lower triangle to the square.
"""

import pytest
import torch

from harness import Table, at_most, between, claim, close, configs, measure, same, sizes
from refimpl import (
    GPT2_XL_BLOCK,
    LLAMA_2_7B,
    LLAMA_3_2_1B,
    LLAMA_3_8B,
    LLAMA_3_70B,
    PUBLISHED,
    attention,
    cost,
)
from refimpl.hardware import H100

GIB, MIB = 2**30, 2**20

# A Llama-3-8B layer with a key/value head for each query head, as the refresher counts it at first.
MHA = LLAMA_3_8B.but(n_kv_heads=32)

# Models on which the tables of any model are locked: windows and tied tables, then latents and experts.
ANY = ("gemma-2-9b", "deepseek-v3")

# What a table of cosines and sines may take beside the matrices: a part in a thousand.
ASIDE = 1e-3


def pass_flops(make, config, n, batch=1):
    """FLOPs of one pass over n tokens."""
    model, tokens = make(config), torch.zeros(batch, n, dtype=torch.int64, device="meta")
    with torch.no_grad():
        return measure.flops(lambda: model(tokens))


def run(make, config):
    """Build a model and pass two tokens through it: building alone is no call."""
    model = make(config)
    with torch.no_grad():
        model(torch.zeros(1, 2, dtype=torch.int64, device="meta"))


def maker(impl, device):
    return lambda config: impl.Transformer(config, device=device, dtype=torch.float32)


def reference(config):
    import refimpl

    return refimpl.Transformer(config, device="meta")


# --- the ruler ----------------------------------------------------------------------------------------


@claim("cost.matmul-rule", needs=None, source="refresher §5, aside on FLOPs, §7")
@pytest.mark.parametrize("a, b, c", [(7, 11, 13), (1, 64, 5), (1024, 128, 1024)])
def test_product_of_matrices_costs_two_abc(a, b, c):
    """(a, b) times (b, c) gives (a, c) for 2abc FLOPs: b multiplies and, by convention, b adds an entry."""
    left, right = torch.empty(a, b, device="meta"), torch.empty(b, c, device="meta")
    same(tuple((left @ right).shape), (a, c), "the product's shape")
    same(measure.flops(lambda: left @ right), 2 * a * b * c, "FLOPs")


# --- heads --------------------------------------------------------------------------------------------


def score_flops(attend, n_heads, n_kv_heads, n, d_head):
    """FLOPs of attention alone, every query over every key."""
    q, k, v = (torch.empty(1, h, n, d_head, device="meta") for h in (n_heads, n_kv_heads, n_kv_heads))
    with torch.no_grad():
        return measure.flops(lambda: attend(q, k, v, causal=False, scale=1.0))


def giga(flops):
    return f"{flops / 1e9:.2f} G"


def heads_table(attend):
    """q k^T of one layer at 1,024 tokens: half of what attention computes; the other half averages values."""
    printed = {
        1: ("8.59 G", "4 MiB"),
        8: ("1.07 G", "32 MiB"),
        32: ("0.27 G", "128 MiB"),
        64: ("0.13 G", "256 MiB"),
    }
    rows = []
    for n_heads, (per_head, grid) in printed.items():
        total = score_flops(attend, n_heads, n_heads, 1024, 4096 // n_heads) // 2
        held = cost.score_grid_bytes(n_heads, 1024, 4)
        rows.append(
            (n_heads, 4096 // n_heads, per_head, giga(total / n_heads), "8.59 G", giga(total),
             n_heads * 1024**2, grid, binary(held))
        )  # fmt: skip
    columns = (
        "n_heads", "d_head", "a head (document)", "a head", "all (document)", "all", "exponentials",
        "fp32 grid (document)", "fp32 grid",
    )  # fmt: skip
    return Table("Scores of one layer at 1,024 tokens, by the number of heads", columns, tuple(rows))


@claim(
    "cost.score-flops-ignore-heads",
    needs="attention",
    on="meta",
    source="refresher, short version, §5",
    erratum="the refresher says that the arithmetic is identical for any number of heads; its matrix "
    "products are, but 64 heads take 64 times the exponentials of one head, 67.1M against 1.05M",
)
def test_score_flops_do_not_depend_on_the_number_of_heads(impl, receipt):
    """Cutting d_model into more heads leaves the FLOPs of the scores; each head costs its part."""
    table = heads_table(impl.attention)
    receipt(table)
    for n_heads, _, printed_each, each, printed_all, total, exponentials, printed_grid, grid in table.rows:
        same((each, total), (printed_each, printed_all), f"FLOPs of a head, and of all {n_heads}")
        same(grid, printed_grid, f"the grid of {n_heads} heads in fp32")
        same(exponentials == 1024**2, n_heads == 1, "one head's exponentials, with one head only")
    same(score_flops(impl.attention, 6, 6, 40, 16), 2 * 2 * 40 * 40 * 96, "6 heads of 16 over 40 tokens")


@claim("cost.gqa-scores-stay", needs="attention", on="meta", source="refresher §5, §6")
@pytest.mark.parametrize("n_kv_heads", [32, 8, 1])
def test_sharing_keys_saves_no_score_flops(impl, n_kv_heads):
    """Query heads that share keys and values still score each of them: the FLOPs are those of full heads."""
    found = score_flops(impl.attention, 32, n_kv_heads, 64, 128)
    same(found, 2 * 2 * 64 * 64 * 4096, f"FLOPs with {n_kv_heads} key/value heads")


@claim(
    "cost.scores-grow-with-the-square",
    needs="attention",
    on="meta",
    source="whiteboard, Attention is a soft lookup, The KV cache, How to say it; refresher §5",
)
@pytest.mark.parametrize("n, times, factor", [(1024, 2, 4), (1024, 4, 16), (8192, 4, 16)])
def test_scores_of_four_times_the_tokens_cost_sixteen_times(impl, n, times, factor):
    """Attention over twice the tokens costs 4 times the FLOPs, and over four times the tokens 16 times."""
    a, b = (score_flops(impl.attention, 6, 2, length, 16) for length in (n, times * n))
    same(b / a, float(factor), f"FLOPs at {times * n} over FLOPs at {n} tokens")


# --- the grid of scores ---------------------------------------------------------------------------------


@claim(
    "cost.score-grid-memory",
    needs=None,
    source="refresher, short version, §5; whiteboard, The KV cache",
    erratum="the refresher compares fp32 scores with bf16 weights, and prints 136.93 where N gives 136.92; "
    "in one dtype it is 68.5. The whiteboard's 128 MB are decimal, beside a cache in binary units",
)
@pytest.mark.parametrize(
    "n_heads, n, width, n_bytes, weights",
    [
        (32, 1024, 4, 128 * MIB, 0.01),
        (32, 8192, 4, 8 * GIB, 0.53),
        (32, 32768, 4, 128 * GIB, 8.56),
        (32, 131072, 4, 2048 * GIB, 136.92),
        (1, 8000, 2, 128_000_000, 0.01),
        (32, 8000, 2, 4_096_000_000, 0.26),
    ],
)
def test_grid_of_scores_outgrows_the_weights(n_heads, n, width, n_bytes, weights):
    """A layer's scores take n_heads n^2 numbers: 8 GiB at 8k in fp32, and more than any card at 128k."""
    dtype = {2: torch.float16, 4: torch.float32}[width]
    grid = torch.empty(n_heads, n, n, dtype=dtype, device="meta")
    same(grid.nbytes, n_bytes, "bytes of one layer's scores")
    same(grid.nbytes, cost.score_grid_bytes(n_heads, n, width), "the same by the closed form")
    model = 2 * cost.n_parameters(LLAMA_3_8B)
    close(grid.nbytes / model, weights, 0.005, "in units of Llama-3-8B in bf16")
    if n == 131072:
        same(f"{grid.nbytes / model:.2f}" == "136.93", False, "the printed ratio")
        close(grid.nbytes / 2 / model, 68.46, 0.005, "scores in bf16 against weights in bf16")
        same(grid.nbytes > 20 * H100.memory, True, "more than 20 cards' memory")


def binary(n_bytes):
    """Bytes in the largest binary unit that leaves at least 1."""
    power = min((int(n_bytes).bit_length() - 1) // 10, 4)
    return f"{n_bytes / 1024**power:g} {('B', 'KiB', 'MiB', 'GiB', 'TiB')[power]}"


def score_grid_table():
    """One layer's grid by the number of tokens, 32 heads, against Llama-3-8B in bf16."""
    printed = {1024: ("128 MiB", "0.01x"), 8192: ("8 GiB", "0.53x"), 32768: ("128 GiB", "8.56x"),
               131072: ("2 TiB", "136.93x")}  # fmt: skip
    weights, rows = 2 * cost.n_parameters(LLAMA_3_8B), []
    for n, document in printed.items():
        grid = cost.score_grid_bytes(32, n, 4)
        rows.append((n, *document, binary(grid), f"{grid / weights:.2f}x", f"{grid / 2 / weights:.2f}x"))
    columns = ("tokens", "grid (document)", "of the weights (document)", "grid in fp32", "of the weights",
               "in one dtype")  # fmt: skip
    return Table("One layer's scores against the weights of the model", columns, tuple(rows))


def grids_kept(attend, place):
    """How many numbers attention keeps for its backward pass for each score: 1 where it keeps the weights,
    0 where it works in tiles and recomputes. From three lengths, since what it keeps of q, k and v is
    linear: kept(128) - 3 kept(64) + 2 kept(32) is 6144 times what grows with the square."""

    def kept(n):
        q, k, v = (place(torch.ones(1, 3, n, 16) / 4).requires_grad_() for _ in range(3))
        return sum(
            measure.numbers(x) for x in measure.saved(lambda: attend(q, k, v, causal=False, scale=1.0))
        )

    return (kept(128) - 3 * kept(64) + 2 * kept(32)) / (6144 * 3)


def largest_tensor(attend, n, place):
    """Numbers in the largest tensor that attention makes on its way, over those of a grid of scores."""
    q, k, v = (place(torch.ones(1, 3, n, 16) / 4) for _ in range(3))
    with torch.no_grad():
        return measure.largest(lambda: attend(q, k, v, causal=False, scale=1.0)) / (3 * n * n)


@claim(
    "cost.keeps-at-most-the-grid",
    needs="attention",
    gradients=True,
    source="refresher §5; whiteboard, The KV cache",
)
def test_attention_makes_and_keeps_no_more_than_its_grid(impl, device, dtype, receipt):
    """Attention makes nothing larger than its grid of scores, and keeps that or less for backward."""

    def place(x):
        return x.to(dtype).to(device)

    # 16 features a head: a kernel that lays out a product for each feature makes 16 grids. Twice the grid is
    # room for a column more, or a padded tile; 4 kept grids for weights in two dtypes, their sums, a mask.
    table, found = grids_table({"tested": impl.attention}, place)
    receipt(table)
    at_most(max(found["tested"][:2]), 2.0, "the largest tensor made, in grids")
    at_most(found["tested"][2], 4.0, "numbers kept for backward, a score")


@claim("cost.scores-are-scratch", needs="attention", source="refresher, short version, §5")
@pytest.mark.parametrize("causal", [False, True], ids=["open", "causal"])
def test_nothing_of_the_size_of_the_scores_outlives_the_call(impl, draw, causal):
    """The grid of scores is scratch: once the call has returned, nothing of its size is left."""
    q, k, v = draw(2, 6, 48, 8), draw(2, 2, 48, 8), draw(2, 2, 48, 8)

    def call():
        return impl.attention(q, k, v, causal=causal, scale=0.3)

    with torch.no_grad():
        call()  # what is made once, such as a mask kept for later calls, is no scratch
        left = measure.left_over(call)
    at_most(left, 2 * 6 * 48 * 48 - 1, "numbers in the largest tensor left over")


def fused(q, k, v, *, causal, scale):
    return torch.nn.functional.scaled_dot_product_attention(q, k, v, is_causal=causal, scale=scale)


def grids_table(kernels, place=torch.clone):
    """What kernels make and keep, in numbers a score: 1 is the grid, 0 tiles. With the numbers themselves."""
    found = {
        name: (*(largest_tensor(f, n, place) for n in (128, 512)), grids_kept(f, place))
        for name, f in kernels.items()
    }
    rows = [(name, *(f"{number:.2f}" for number in numbers)) for name, numbers in found.items()]
    columns = ("kernel", "largest made, n = 128", "largest made, n = 512", "kept for backward")
    return Table("Numbers a score that attention makes and keeps", columns, tuple(rows)), found


@claim(
    "cost.fused-kernel-writes-no-grid",
    needs=None,
    source="refresher §5; whiteboard, The KV cache",
    erratum="the whiteboard says that fused kernels do not change the FLOP count; going forward they do "
    "not, but backward they compute the scores again: 2.5 forward passes instead of 2",
)
def test_fused_kernel_neither_makes_nor_keeps_the_grid():
    """A fused kernel gives the formula's answer without the grid, and pays by computing the scores twice."""
    from torch.utils.flop_counter import sdpa_backward_flop_count, sdpa_flop_count

    same(grids_kept(attention, torch.clone), 1.0, "numbers kept a score, step by step")
    same(grids_kept(fused, torch.clone), 0.0, "numbers kept a score by the fused kernel")
    same(largest_tensor(attention, 512, torch.clone), 1.0, "numbers made a score, step by step")
    at_most(largest_tensor(fused, 512, torch.clone), 0.1, "numbers made a score by the fused kernel")
    q = torch.linspace(-1, 1, 3 * 64 * 16).reshape(1, 3, 64, 16)
    gap = (fused(q, q, q, causal=True, scale=0.5) - attention(q, q, q, causal=True, scale=0.5)).abs().max()
    at_most(gap, 64 * torch.finfo(torch.float32).eps, "the two kernels' difference")
    shape = (1, 32, 1024, 128)
    once, back = sdpa_flop_count(shape, shape, shape), sdpa_backward_flop_count(shape, shape, shape, shape)
    same(once, cost.score_flops(MHA, 1024, 1024), "FLOPs forward")
    same(back / once, 2.5, "FLOPs backward over forward, as PyTorch counts its fused kernel")


# --- where a layer's FLOPs go ---------------------------------------------------------------------------


def layer_flops(make, config, *lengths):
    """(projections, scores) of one attention layer over n tokens, for each length n.

    A model of one layer with 64 words and a feed-forward 64 wide is that layer and little else, and that
    little is taken off. One token alone has one score a head: from it comes what is linear in n.
    """
    tiny = config.but(n_layers=1, n_vocab=64, d_ff=64, tie_embeddings=False)
    other = 2 * (cost.ffn_parameters(tiny) + tiny.n_vocab * tiny.d_model)
    alone = pass_flops(make, tiny, 1) - other - cost.score_flops(tiny, 1, 1)
    found = [(n * alone, pass_flops(make, tiny, n) - n * (other + alone)) for n in lengths]
    if any(abs(s) < 0.01 * cost.score_flops(tiny, n, n) for n, (_, s) in zip(lengths, found, strict=True)):
        raise NotImplementedError("not offered: the counter sees its projections and not its scores")
    return found


def layer_table(projections, scores):
    """One attention layer at 1,024 tokens; a model that skips the future needs half of the last two rows."""
    total = projections + scores
    rows = [
        (step, document, share, f"{flops / 1e9:.1f} G", f"{100 * flops / total:.1f}%")
        for step, document, share, flops in (
            ("W_q, W_k, W_v, W_o", "137.4 G", "89%", projections),
            ("q k^T", "8.6 G", "6%", scores / 2),
            ("weights v", "8.6 G", "6%", scores / 2),
            ("q k^T and weights v", "-", "6%", scores),
            ("total", "154.6 G", "100%", total),
        )
    ]
    return Table(
        "FLOPs of one attention layer at 1,024 tokens, 32 heads",
        ("step", "FLOPs (document)", "share (document)", "FLOPs", "share"), tuple(rows),
    )  # fmt: skip


@claim(
    "cost.layer-flops",
    needs="Transformer",
    on="meta",
    source="refresher §5",
    erratum="the refresher's row 'applying them' has 2 n d^2, which is one of the four matrices, and its "
    "list leaves out the average of the values, as large as the scores; measured 8 n d^2 and 4 n^2 d",
)
@pytest.mark.parametrize("n, d_model", [(1024, 4096), (300, 4096), (2048, 1024)])
def test_layer_costs_eight_nd2_and_four_n2d(impl, device, receipt, n, d_model):
    """An attention layer costs 8 n d^2 for its projections and up to 4 n^2 d for scores and average."""
    config = MHA.but(d_model=d_model, d_head=d_model // 32)
    ((projections, scores),) = layer_flops(maker(impl, device), config, n)
    if (n, d_model) == (1024, 4096):
        receipt(layer_table(projections, scores))
    close(projections, 8 * n * d_model**2, ASIDE * 8 * n * d_model**2, "FLOPs of the projections")
    full = 4 * n * n * d_model
    between(
        scores, (1 - ASIDE) * cost.causal_score_flops(config, n), (1 + ASIDE) * full, "FLOPs of the scores"
    )
    same(projections > 3 * 2 * n * d_model**2, True, "more than the 2 n d^2 of one matrix")


@claim(
    "cost.gqa-shrinks-projections",
    needs="Transformer",
    on="meta",
    source="refresher §5",
    erratum="the refresher says that grouped heads do not shrink a layer's FLOPs; they leave the scores, but "
    "the key and value projections shrink to a quarter: 154.6 G becomes 103.1 G at 1,024 tokens",
)
def test_grouped_heads_shrink_the_key_and_value_projections(impl, device):
    """With 8 key/value heads for 32, the scores cost the same and the projections 5/8 of what they did."""
    make = maker(impl, device)
    full, grouped = (layer_flops(make, config, 1024)[0] for config in (MHA, LLAMA_3_8B))
    close(grouped[0] / full[0], 5 / 8, ASIDE, "the projections' FLOPs against full heads")
    close(grouped[1] / full[1], 1.0, ASIDE, "the scores' FLOPs against full heads")
    at_most(sum(grouped) / sum(full), 0.67, "the layer's FLOPs against full heads, which do shrink")


# what the scores are a part of, its attention, its feed-forward's width, and where they equal the rest
CROSSOVERS = (
    ("attention, 32 kv heads", MHA, 0, 8192),
    ("attention, 8 kv heads", LLAMA_3_8B, 0, 5120),
    ("block of Llama-3-8B", LLAMA_3_8B, LLAMA_3_8B.d_ff, 26624),
    ("block of Llama-2-7B", MHA, LLAMA_2_7B.d_ff, 24704),
)


def crossovers(make):
    """The scores' part of a layer's FLOPs at 1,024 tokens, at d_model tokens, and where they take over."""
    flops, found = {}, {}
    for config in (MHA, LLAMA_3_8B):
        lengths = (1024, config.d_model, *(n for _, c, _, n in CROSSOVERS if c is config))
        flops[config] = dict(zip(lengths, layer_flops(make, config, *lengths), strict=True))
    for what, config, d_ff, half in CROSSOVERS:
        ffn = 6 * config.d_model * d_ff  # 2 FLOPs for each weight of three matrices
        shares = {n: s / (projections + s + n * ffn) for n, (projections, s) in flops[config].items()}
        found[what] = (half, [shares[n] for n in (1024, config.d_model, half)])
    return found


def crossover_table(found):
    columns = (
        "scores in", "at 1,024 (document)", "at 1,024", "half (document)", "at 4,096", "half at",
        "share there",
    )  # fmt: skip
    printed = {what: (n, [f"{100 * share:.1f}%" for share in shares]) for what, (n, shares) in found.items()}
    rows = [(what, "6%", a, "past 4,096", b, n, c) for what, (n, (a, b, c)) in printed.items()]
    return Table("The quadratic share of a layer's FLOPs", columns, tuple(rows))


@claim(
    "cost.quadratic-share",
    needs="Transformer",
    on="meta",
    source="refresher, short version, §5",
    erratum="the refresher says that the quadratic part is 6% of the layer at 1,024 tokens and takes over "
    "past d_model = 4,096; 6% is q k^T alone, both products are 11.1% of attention and 3.7% of a block, and "
    "they take over past 2 d_model = 8,192 (5,120 with grouped heads, 26,624 for the whole block)",
)
def test_quadratic_part_takes_over_at_twice_the_width(impl, device, receipt):
    """The scores are a tenth of attention at 1,024 tokens and half of it at 2 d_model, later in a block."""
    found = crossovers(maker(impl, device))
    receipt(crossover_table(found))
    for what, (n, (_, wide, half)) in found.items():
        # Half the FLOPs where the whole square is computed, a third where the future is skipped.
        between(half, 1 / 3 - ASIDE, 1 / 2 + ASIDE, f"share of {what} at {n} tokens")
        at_most(wide, 0.45, f"share of {what} at d_model tokens: not yet half")
    between(found["attention, 32 kv heads"][1][0], 0.0588, 0.1112, "share of attention at 1,024 tokens")


@claim(
    "cost.layer-grows-less-than-the-square",
    needs="Transformer",
    on="meta",
    source="whiteboard, The KV cache, How to say it",
    erratum="the whiteboard says that going from 8K to 32K multiplies attention compute by 16; that is the "
    "scores alone: attention with its projections grows 10-fold, the whole 7B layer 7-fold",
)
def test_layer_of_four_times_the_tokens_costs_seven_times(impl, device):
    """From 8,192 to 32,768 tokens the scores grow 16-fold, their layer with its projections only 10-fold."""
    (p1, s1), (p4, s4) = layer_flops(maker(impl, device), LLAMA_2_7B, 8192, 32768)
    close(s4 / s1, 16.0, 16 * ASIDE, "growth of the scores")
    # The lower figure of each pair is for a model that skips the future.
    between((p4 + s4) / (p1 + s1), 7.99, 10.01, "growth of attention with its projections")
    ffn = 2 * 8192 * cost.ffn_parameters(LLAMA_2_7B)
    between((p4 + s4 + 4 * ffn) / (p1 + s1 + ffn), 5.70, 7.0, "growth of the whole layer")


# --- the whole model ------------------------------------------------------------------------------------


PASSES = (1, 300, 1024, 2005)


def passes(make):
    """FLOPs of passes through Llama-3-8B at full depth, by their tokens."""
    return {n: measure.at_depth(lambda c, n=n: pass_flops(make, c, n), LLAMA_3_8B) for n in PASSES}


def two_n_table(found):
    """FLOPs a token of Llama-3-8B, with every query scored against every key."""
    rows = []
    for n, flops in found.items():
        document, measured = 2 * cost.n_parameters(LLAMA_3_8B) / 1e9, flops / n / 1e9
        rows.append((n, f"{document:.2f} G", f"{measured:.2f} G", f"{100 * (document / measured - 1):+.1f}%"))
    columns = ("tokens", "2N (document)", "measured", "2N is off by")
    return Table("FLOPs a token of a pass through Llama-3-8B", columns, tuple(rows))


@claim(
    "cost.two-flops-a-weight",
    needs="Transformer",
    on="meta",
    source="refresher §5, aside on FLOPs, §6",
    erratum="the refresher has 2N for all N parameters; an embedding is looked up, not multiplied, so a "
    "token costs 15.0 G instead of 16.1 G, and scores come on top: the errors cancel at about 2,005 tokens",
)
def test_pass_costs_two_flops_a_token_and_matrix_weight(impl, device, receipt):
    """A pass costs 2 FLOPs for each token there is and each weight of a matrix, and the scores."""
    config, found = LLAMA_3_8B, passes(maker(impl, device))
    receipt(two_n_table(found))
    for n, measured in found.items():
        weights, most = 2 * cost.matmul_parameters(config) * n, cost.forward_flops(config, n)
        between(measured, (1 - ASIDE) * weights, (1 + ASIDE) * most, f"FLOPs of {n} tokens")
    between(2 * cost.n_parameters(config) / found[1], 1.06, 1.08, "2N, which is 7% too much")


@claim(
    "cost.tied-table-still-multiplies",
    needs="Transformer",
    on="meta",
    source="refresher §5, §13; whiteboard, One block",
)
def test_tied_model_computes_as_much_as_an_untied_one(impl, device):
    """Tying the two tables saves parameters and no FLOPs: the output table multiplies either way."""
    make, tied = maker(impl, device), LLAMA_3_2_1B.but(n_layers=1)
    a, b = (pass_flops(make, config, 4) for config in (tied, tied.but(tie_embeddings=False)))
    same(a, b, "FLOPs of 4 tokens, tied and untied")
    close(a, cost.forward_flops(tied, 4), ASIDE * a, "the closed form")


# --- where the parameters live --------------------------------------------------------------------------


def whole(make, config):
    """Parameters of a model at full depth."""
    return measure.at_depth(lambda c: measure.n_parameters(make(c)), config)


def part(make, config, size):
    """Parameters that grow in proportion to one size, and they alone do: d_head for one block's attention,
    d_ff for its feed-forward, n_vocab for the tables. Twice what half of that size takes off."""
    full = config.but(n_layers=1)
    half = full.but(**{size: getattr(full, size) // 2})
    return 2 * (measure.n_parameters(make(full)) - measure.n_parameters(make(half)))


COUNTS = {
    "llama-3-8b": (LLAMA_3_8B, 8_030_261_248),
    "llama-3-70b": (LLAMA_3_70B, 70_553_706_496),
    "llama-2-7b": (LLAMA_2_7B, 6_738_415_616),
    "llama-3.2-1b": (LLAMA_3_2_1B, 1_235_814_400),
    "llama-3.2-1b untied": (LLAMA_3_2_1B.but(tie_embeddings=False), 1_498_482_688),
}


@claim(
    "cost.whole-model-parameters",
    needs="Transformer",
    on="meta",
    source="refresher §1, §6; whiteboard, One block",
)
@pytest.mark.parametrize("name", COUNTS)
def test_published_sizes_give_the_published_counts(impl, device, name):
    """The sizes in a config give the model's number of parameters, to the last one."""
    make, (config, published) = maker(impl, device), COUNTS[name]
    run(make, config.but(n_layers=1))
    same(whole(make, config), published, f"parameters of {name}")
    same(cost.n_parameters(config), published, "the closed form")


def llama_2_table(make):
    """The whiteboard's count of a 7B model, line by line."""
    c = LLAMA_2_7B
    attention, feed_forward, tables = (part(make, c, size) for size in ("d_head", "d_ff", "n_vocab"))
    block, total = attention + feed_forward, whole(make, c)
    rows = (
        ("attention of a block", "67.1M", attention),
        ("feed-forward of a block", "135.3M", feed_forward),
        ("block", "202.4M", block),
        ("12 d_model^2", "201.3M", 12 * c.d_model**2),
        ("32 blocks", "6.476B", 32 * block),
        ("embedding and output", "262M", tables),
        ("sum of the lines", "6.74B", 32 * block + tables),
        ("65 norm gains", "-", total - 32 * block - tables),
        ("whole model", "7B", total),
    )
    return Table("Parameters of Llama-2-7B", ("what", "document", "measured"), rows)


@claim(
    "cost.llama-2-7b-parameters",
    needs="Transformer",
    on="meta",
    source="whiteboard, One block",
    erratum="the whiteboard's lines leave out the 65 norm gains: they add up to 6,738,149,376, and the model "
    "has 6,738,415,616 parameters",
)
def test_count_of_llama_2_7b(impl, device, receipt):
    """Llama-2-7B is 32 blocks of 67.1M attention and 135.3M feed-forward, two tables and 65 norm gains."""
    make = maker(impl, device)
    run(make, LLAMA_2_7B.but(n_layers=1))
    table = llama_2_table(make)
    receipt(table)
    found = {name: n for name, _, n in table.rows}
    same(found["attention of a block"], 4 * 4096**2, "attention of a block")
    same(found["feed-forward of a block"], 3 * 4096 * 11008, "feed-forward of a block")
    same(found["embedding and output"], 2 * 32000 * 4096, "the two tables, apart")
    same(found["65 norm gains"], 65 * 4096, "what the printed lines leave out")
    same((found["sum of the lines"], found["whole model"]), (6_738_149_376, 6_738_415_616), "sum and total")


@claim(
    "cost.rule-of-twelve",
    needs="Transformer",
    on="meta",
    source="whiteboard, One block, How to say it; refresher §9",
    erratum="the whiteboard has 12 d^2 parameters and two thirds feed-forward for a block in general; that "
    "is full heads with a feed-forward near 8/3 d (or 4 d, two matrices): Llama-3-8B has 13.0 d^2 and 81%",
)
def test_block_has_about_twelve_squares_of_the_width(impl, device, receipt):
    """A block has 12 d^2 parameters with full heads and a feed-forward near 8/3 d, and more elsewhere."""
    make = maker(impl, device)
    run(make, LLAMA_2_7B.but(n_layers=1))
    table = rule_table(make)
    receipt(table)
    found = {row[0]: row[3:] for row in table.rows}
    same(found["llama-2-7b"], (4.0, 8.0625, 12.0625, "66.8%"), "attention, feed-forward, block in d^2, share")
    same(found["llama-3-8b"], (2.5, 10.5, 13.0, "80.8%"), "the same of Llama-3-8B")
    same(found["llama-3-70b"], (2.25, 10.5, 12.75, "82.4%"), "the same of Llama-3-70B")
    same(found["llama-3.2-1b"], (2.5, 12.0, 14.5, "82.8%"), "the same of Llama-3.2-1B")
    usual = [name for name, (_, _, squares, _) in found.items() if abs(squares / 12 - 1) < 0.01]
    same(usual, ["GPT-2 XL", "llama-2-7b"], "blocks within 1% of 12 d^2")


def rule_table(make):
    """Blocks in units of d_model^2; GPT-2 XL, with two matrices and biases left out, is arithmetic."""
    d, d_ff = GPT2_XL_BLOCK["d_model"], GPT2_XL_BLOCK["d_ff"]
    blocks = {"GPT-2 XL": (4.0, 2 * d_ff / d)}
    for name, config in PUBLISHED.items():
        squares = config.d_model**2
        blocks[name] = (part(make, config, "d_head") / squares, part(make, config, "d_ff") / squares)
    rows = [(name, "12", "67%", a, f, a + f, f"{100 * f / (a + f):.1f}%") for name, (a, f) in blocks.items()]
    columns = ("block of", "document", "share (document)", "attention", "feed-forward", "block", "share")
    return Table("Parameters of a block, in d_model^2", columns, tuple(rows))


@claim(
    "cost.swiglu-width",
    needs=None,
    source="whiteboard, One block",
    erratum="the whiteboard says that SwiGLU's smaller width lands near the 8 d^2 of two matrices at 4 d; "
    "Llama-2-7B's 8/3 d does (8.06 d^2), Llama-3's 3.5 d does not (10.5 d^2), nor does its 1B's 4 d (12 d^2)",
)
@pytest.mark.parametrize(
    "d_model, d_ff, matrices, squares",
    [
        (GPT2_XL_BLOCK["d_model"], GPT2_XL_BLOCK["d_ff"], 2, 8.0),
        (4096, 11008, 3, 8.0625),
        (4096, 14336, 3, 10.5),
        (8192, 28672, 3, 10.5),
        (2048, 8192, 3, 12.0),
    ],
)
def test_three_matrices_equal_two_at_two_thirds_of_the_width(d_model, d_ff, matrices, squares):
    """Three matrices 8/3 d wide have the 8 d^2 of two matrices 4 d wide; wider ones have more."""
    same(matrices * d_model * d_ff / d_model**2, squares, "parameters in d_model^2")
    two_thirds = -(-8 * d_model // 3 // 256) * 256  # rounded up to a multiple of 256
    same(abs(squares / 8 - 1) < 0.01, matrices == 2 or d_ff == two_thirds, "within 1% of 8 d^2")


def tables_share(make):
    """The embedding and output tables' part of a model."""
    untied = LLAMA_3_2_1B.but(tie_embeddings=False)
    printed = {
        "llama-2-7b": (LLAMA_2_7B, "4%"),
        "llama-3-8b": (LLAMA_3_8B, "'a rounding error'"),
        "llama-3.2-1b": (LLAMA_3_2_1B, "about a fifth"),
        "llama-3.2-1b untied": (untied, "half"),
    }
    rows = []
    for name, (config, document) in printed.items():
        tables, total = part(make, config, "n_vocab"), whole(make, config)
        rows.append((name, config.n_vocab, tables, total, document, f"{100 * tables / total:.1f}%"))
    columns = ("model", "n_vocab", "in the tables", "in all", "document", "share")
    return Table("Parameters in the embedding and output tables", columns, tuple(rows))


@claim(
    "cost.tables-share",
    needs="Transformer",
    on="meta",
    source="whiteboard, One block",
    erratum="the whiteboard calls the tables a rounding error at 7B and half of a 1B model with 128K words; "
    "they are 13.1% of Llama-3-8B, with its 128K words, and 35.1% of the 1B shape, which untied has 1.5B",
)
def test_tables_weigh_more_in_a_small_model_with_a_large_vocabulary(impl, device, receipt):
    """The tables' share grows with the vocabulary and shrinks with the model; tying counts them once."""
    make = maker(impl, device)
    run(make, LLAMA_3_2_1B.but(n_layers=1))
    table = tables_share(make)
    receipt(table)
    found = {name: (tables, share) for name, _, tables, _, _, share in table.rows}
    same(found["llama-2-7b"], (2 * 32000 * 4096, "3.9%"), "in Llama-2-7B's two tables, and their share")
    same(found["llama-3-8b"], (2 * 128256 * 4096, "13.1%"), "the same of Llama-3-8B: no rounding error")
    same(found["llama-3.2-1b"], (128256 * 2048, "21.3%"), "in Llama-3.2-1B's one table, and its share")
    same(found["llama-3.2-1b untied"], (2 * 128256 * 2048, "35.1%"), "in two tables instead: not half")


# --- any model ------------------------------------------------------------------------------------------


def laid_out(s):
    """Parameters of a config by part, summed over the tensors of every layer, the tables and final norms."""
    found = dict.fromkeys(sizes.parameters(s), 0)
    for sparse, layers in s.kinds.items():
        for name, tensor in sizes.skeleton(s, s.sparse.index(sparse)).items():
            if name.startswith("mlp.gate."):
                part = "routers"
            elif tensor.ndim == 1 or name.endswith(".bias"):
                part = "norms and biases"
            elif "expert" in name:
                part = "experts"
            else:
                part = "feed-forward" if name.startswith("mlp") else "attention"
            found[part] += layers * tensor.numel()
    ends = (1 + s.embedding_norm) * s.norm_numbers * s.d_model + s.head_bias * s.n_vocab
    found["norms and biases"] += ends
    found["embedding"] = (s.n_vocab + s.n_positions) * s.d_model
    found["output table"] = 0 if s.tied else s.n_vocab * s.d_model
    return found


def parts_table(s):
    """Where a model's parameters are, and how many of them one token meets."""
    whole, active = sizes.parameters(s), sizes.parameters(s, active=True)
    there = {part: n for part, n in whole.items() if n}
    rows = [(part, n, f"{100 * n / sum(whole.values()):.1f}%", active[part]) for part, n in there.items()]
    rows.append(("all", sum(whole.values()), "100.0%", sum(active.values())))
    return Table(
        f"Parameters of {s.name}", ("part", "parameters", "share", "one token meets"), tuple(rows),
        "; ".join(s.notes),
    )  # fmt: skip


@claim("cost.model-parameters", needs=None, source="whiteboard, One block; refresher §1, §6")
def test_tensors_of_a_config_add_up_to_its_closed_form(model, receipt):
    """Tensor by tensor, any config's sizes add up to its parameters by closed form, and as published."""
    table = parts_table(model)
    receipt(table)
    found = {part: n for part, n, *_ in table.rows}
    total = found.pop("all")
    same(found, {part: n for part, n in laid_out(model).items() if n}, "parameters by part")
    published = configs.published().get(model.name)
    if published and model == configs.read(model.name):
        same(total, published["n_parameters"], f"parameters of {model.name}, as published")


@claim("cost.model-as-built", needs="Transformer", on="meta", source="whiteboard, One block; refresher §1")
def test_model_built_from_a_config_has_its_parameters(impl, device, model):
    """A model built from any config's sizes has as many parameters as the sizes give."""
    config, make = sizes.as_reference(model), maker(impl, device)
    run(make, config.but(n_layers=1))
    same(whole(make, config), sizes.n_parameters(model), f"parameters of {model.name}")
    same(cost.matmul_parameters(config), sizes.matmul_parameters(model), "those that multiply")


@claim("cost.published-counts", needs=None, source="whiteboard, One block; refresher §1, §6")
def test_sizes_of_published_models_give_their_exact_counts():
    """Sizes give the exact count of 65 published models, with all their experts, latents and biases."""
    published = configs.published()
    same(len(published), 65, "models")
    for s in configs.collection():
        entry, found = published[s.name], (sizes.n_parameters(s), sizes.n_parameters(s, active=True))
        same(found, (entry["n_parameters"], entry["n_active"]), f"parameters of {s.name}, and active ones")
    # A library that keeps DeepSeek-V3's router biases as buffers counts fewer parameters by these.
    v3 = configs.read("deepseek-v3")
    same(sizes.n_parameters(v3) - 671_026_404_352, v3.kinds[True] * v3.experts.n, "58 x 256 router biases")


def scaled(flops):
    return f"{flops / 1e9:,.2f} G" if flops < 1e13 else f"{flops / 1e12:,.1f} T"


def steps_table(s):
    """FLOPs of reading n tokens at once, and of writing the n-th."""
    document = 2 * sizes.n_parameters(s)
    rows = []
    for n in sizes.contexts(s):
        seen, square = sizes.prefill_flops(s, n), sizes.prefill_flops(s, n, causal=False)
        step = sizes.decode_flops(s, n)
        rows.append((n, scaled(seen), scaled(square), scaled(step),
                     scaled(document), f"{document / step:.2f}"))  # fmt: skip
    columns = ("tokens", "read at once, what is seen", "the whole square", "the last one alone",
               "2N (document)", "2N over it")  # fmt: skip
    return Table(f"FLOPs of {s.name}", columns, tuple(rows))


@claim("cost.model-flops", needs=None, source="refresher §5, aside on FLOPs, §6; whiteboard, The KV cache")
def test_step_costs_two_flops_a_matrix_weight_met_and_its_scores(model, receipt):
    """A step costs 2 FLOPs for each matrix weight that the token meets, and its scores up to the windows."""
    s, met = model, model.n_vocab * model.d_model  # the output table, tied or not
    for sparse, layers in s.kinds.items():
        for name, tensor in sizes.skeleton(s, s.sparse.index(sparse)).items():
            if tensor.ndim > 1 and not name.endswith(".bias"):
                chosen = s.experts.top_k / s.experts.n if ".experts." in name else 1
                met += layers * round(tensor.numel() * chosen)
    widest = max(w or 10**6 for w in s.windows)
    scores = sizes.decode_flops(s, 2) - sizes.decode_flops(s, 1)
    same(sizes.decode_flops(s, 1) - scores, 2 * met, "FLOPs of a step without its scores")
    full = sum(w == 0 for w in s.windows)
    late = sizes.decode_flops(s, 2 * widest) - sizes.decode_flops(s, 2 * widest - 1)
    same(late * s.n_layers, scores * full, "what a token more adds once the windows are full, by layers")
    if s.latent is None:
        steps = sum(sizes.decode_flops(s, n) for n in range(1, 31))
        same(sizes.prefill_flops(s, 30), steps, "30 tokens read at once against one by one")
    receipt(steps_table(s))


# A rule of thumb: how the documents put it, what it is about, the range in which it holds, and from how many
# parameters on it is meant.
RULES = {
    "n_heads d_head over d_model": ("1", lambda s: s.n_heads * s.d_value / s.d_model, 1, 1, 0),
    "n_heads": ("32-64", lambda s: s.n_heads, 32, 64, 0),
    "block in d_model^2": ("12", lambda s: block_squares(s), 11.4, 12.6, 0),
    "tables, %": ("4 at 7B", lambda s: 100 * tables_of(s), 0, 5, 6e9),
}


def block_squares(s):
    found = sizes.parameters(s)
    return sum(found[part] for part in ("attention", "feed-forward", "experts")) / s.n_layers / s.d_model**2


def tables_of(s):
    found = sizes.parameters(s)
    return (found["embedding"] + found["output table"]) / sum(found.values())


def rules_table():
    """Four rules of thumb on every published model; what is outside a rule's range is marked."""
    rows, outside, judged = [], dict.fromkeys(RULES, 0), dict.fromkeys(RULES, 0)
    for s in configs.collection():
        cells = []
        for rule, (_, measure_of, low, high, least) in RULES.items():
            value, meant = measure_of(s), sizes.n_parameters(s) >= least
            breaks = meant and not low <= value <= high
            judged[rule] += meant
            outside[rule] += breaks
            cells.append(f"{value:.4g}{' breaks' if breaks else ''}")
        rows.append((s.name, *cells))
    document = ("rule (document)", *(rule[0] for rule in RULES.values()))
    within = ("holds within", *(f"{low:g} to {high:g}" for _, _, low, high, _ in RULES.values()))
    counts = ("models that break it", *(f"{outside[rule]} of {judged[rule]}" for rule in RULES))
    note = (
        "With latents, d_head is the width of a value. The rule about tables is judged from 6B parameters on."
    )
    return Table(
        "Rules of thumb on 65 published models", ("model", *RULES), (document, within, *rows, counts), note
    )


@claim(
    "cost.rules-on-published-models",
    needs=None,
    source="whiteboard, One block; refresher §1, §4, §5",
    erratum="the documents say that d_model is n_heads times d_head, that models land at 32 to 64 heads, "
    "that a block has 12 d^2 and that tables are a rounding error at 7B (4%); 14, 28 and 40 of 65 published "
    "models are elsewhere, and the tables of 13 of the 40 from 6B on",
)
def test_published_models_break_the_rules_of_thumb(receipt):
    """Published models keep heads, blocks and tables near the usual rules, with many exceptions to each."""
    table = rules_table()
    receipt(table)
    broken = ("14 of 65", "28 of 65", "40 of 65", "13 of 40")
    same(table.rows[-1][1:], broken, "models that break each rule")
    found = {row[0]: row[1:] for row in table.rows}
    same(found["llama-2-7b"], ("1", "32", "12.06", "3.89"), "Llama-2-7B, which keeps all four")
    same(found["qwen3-0.6b"], ("2 breaks", "16 breaks", "15 breaks", "26.1"), "Qwen3-0.6B, which keeps none")


@pytest.mark.receipts("cost")
def test_receipts(receipt, made):
    receipt(
        heads_table(attention),
        score_grid_table(),
        grids_table({"step by step": attention, "fused": fused})[0],
        made(
            "FLOPs of one attention layer at 1,024 tokens, 32 heads",
            lambda: layer_table(*layer_flops(reference, MHA, 1024)[0]),
        ),
        made(
            "The quadratic share of a layer's FLOPs",
            lambda: crossover_table(crossovers(reference)),
        ),
        made(
            "FLOPs a token of a pass through Llama-3-8B",
            lambda: two_n_table(passes(reference)),
        ),
        llama_2_table(reference),
        rule_table(reference),
        tables_share(reference),
        *(table(configs.read(name)) for name in ANY for table in (parts_table, steps_table)),
        rules_table(),
    )
