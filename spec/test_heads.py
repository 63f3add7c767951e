"""Heads: a reshape of a fixed budget, which buys several opinions instead of one."""

import math

import pytest
import torch

from harness import SMALL, Table, at_least, at_most, claim, close, measure, probe, same
from harness.checks import exact64
from refimpl import LLAMA_3_8B, cost

HEADS = (1, 8, 32, 64)

ONE_LAYER = LLAMA_3_8B.but(n_layers=1, n_kv_heads=32)

# One block of six heads in groups of three. A stream of 48 = 6 * 8 lets W_o be the identity.
ONE_SMALL_LAYER = SMALL.but(n_layers=1)
SQUARE = ONE_SMALL_LAYER.but(d_model=48, n_vocab=48)

FOUR = {"q_proj", "k_proj", "v_proj", "o_proj"}
ATTENTION = "model.layers.{}.self_attn.{}_proj.weight"


def split_into(n_heads):
    """A Llama-3-8B layer with its 4096 split over n_heads full heads."""
    return ONE_LAYER.but(n_heads=n_heads, n_kv_heads=n_heads, d_head=4096 // n_heads)


def projections(model):
    """The four attention matrices of the first layer, by name."""
    return measure.matrices(model, "self_attn")


# --- what a head is ----------------------------------------------------------------------------------


def opinions(attention, draw):
    """Four causal heads on the same 12 tokens, through random projections: weights (4, 12, 12)."""
    x = draw(12, 64)
    q, k = ((x @ draw(64, 128) / 8).view(12, 4, 32).transpose(0, 1)[None] for _ in range(2))
    return exact64(probe.weights(attention, q, k, causal=True, scale=32**-0.5))[0]


def opinions_table(w):
    """The spread of each head's bottom row, and how many of the 12 tokens that comes to."""
    spreads = -(w[:, -1] * w[:, -1].clamp(min=1e-300).log()).sum(-1)
    printed = ("1.72", "2.28", "1.86", "2.19")
    rows = tuple((h, printed[h], float(s), float(s.exp())) for h, s in enumerate(spreads))
    note = "The document's heads belong to its own draw; an even row has ln 12 = 2.48."
    return Table("Four random heads on 12 tokens", ("head", "document", "spread", "tokens"), rows, note)


def weights_table(w):
    """Each head's weights, one row a query: what the spreads are taken of."""
    rows = tuple(
        (h, i, " ".join(f"{float(x):.4g}" for x in row))
        for h, head in enumerate(w)
        for i, row in enumerate(head)
    )
    return Table("Weights of four random heads on 12 tokens", ("head", "query", "weights of the keys"), rows)


@claim(
    "heads.own-opinions",
    needs="attention",
    source="refresher, short version, §4; whiteboard, One block",
)
def test_each_head_has_its_own_opinion(impl, draw, receipt):
    """Several heads on the same tokens form as many sets of weights, none a copy of another.

    Over 1,000 draws the two most similar heads differed by 0.48 at the widest point of their triangles, with
    a standard deviation of 0.08 and 0.28 at the least; 0.05 is beyond 5 deviations: odds below 1e-6.
    """
    w = opinions(impl.attention, draw)
    receipt(opinions_table(w), weights_table(w))
    gaps = [float((w[a] - w[b]).abs().max()) for a in range(4) for b in range(a)]
    at_least(min(gaps), 0.05, "the largest difference between the two most similar heads")


@claim(
    "heads.never-interact",
    needs="attention",
    source="refresher §4, §7, §10, §13; whiteboard, One block",
)
@pytest.mark.parametrize("causal", [False, True], ids=["open", "causal"])
@pytest.mark.parametrize("head", [0, 4])
def test_heads_never_interact(impl, draw, causal, head):
    """A head's query, key and value move that head's output and no other."""
    inputs = draw(2, 5, 7, 8), draw(2, 5, 7, 8), draw(2, 5, 7, 8)
    others = draw(2, 5, 7, 8), draw(2, 5, 7, 8), draw(2, 5, 7, 8)
    out = impl.attention(*inputs, causal=causal, scale=0.3)
    for i, name in enumerate("qkv"):
        changed = [x.clone() for x in inputs]
        changed[i][:, head] = others[i][:, head]
        after = impl.attention(*changed, causal=causal, scale=0.3)
        same(probe.moved(out, after, dim=1), [head], f"heads that moved with {name} of head {head}")


@claim(
    "heads.slice-only-q-k-v",
    needs="Transformer",
    through=("attention",),
    source="refresher §4, §5",
)
def test_every_head_reads_every_token_and_all_of_it(impl, build, draw, device):
    """Every head reads every token and every number of it: heads slice q, k and v, never the input.

    Each head in turn is the only one that W_o lets through. Token 0 is a row of signs, and token 1 + j the
    same row with sign j turned, so that the norm in front of the projections moves number j and no other.
    Scores are kept at 0, so that no token is out of sight merely because it weighs little.
    """
    config, n = ONE_SMALL_LAYER, 4
    d, d_head = config.d_model, config.d_head
    weights = draw.weights(config)
    weights[ATTENTION.format(0, "q")] *= 0
    signs = draw(d).sign()
    turned = torch.ones(d, d, dtype=signs.dtype, device=device) - 2 * torch.eye(d, device=device).to(
        signs.dtype
    )
    weights["model.embed_tokens.weight"][: 1 + d] = torch.cat((signs[None], signs * turned))
    tokens = torch.zeros(d + n - 1, n, dtype=torch.int64, device=device)
    other = tokens.clone()
    other[:d, 1] = torch.arange(1, d + 1, device=device)  # rows 0 to d - 1: each number of token 1
    for p in range(n - 1):
        other[d + p, p] = d + 1 + p  # the last rows: each earlier token by another one
    model, output = build(config, weights), weights[ATTENTION.format(0, "o")]
    for head in range(config.n_heads):
        alone = torch.zeros_like(output)
        mine = slice(head * d_head, (head + 1) * d_head)
        alone[:, mine] = 4 * output[:, mine]
        model.load_state_dict({**weights, ATTENTION.format(0, "o"): alone})
        with torch.no_grad():
            seen = probe.moved(model(tokens)[:, -1], model(other)[:, -1], dim=0)
        same(seen, list(range(d + n - 1)), f"numbers of token 1, then tokens, that head {head} reads")


@claim(
    "heads.order-is-free",
    needs="Transformer",
    through=("attention",),
    source="refresher §4, §8; whiteboard, One block",
)
@pytest.mark.parametrize(
    "heads, kv_heads",
    [((1, 2, 0, 3, 5, 4), (0, 1)), ((3, 4, 5, 0, 1, 2), (1, 0))],
    ids=["within-groups", "whole-groups"],
)
def test_heads_are_small_projections_of_their_own(impl, build, draw, dtype, heads, kv_heads):
    """A head is its rows of W_q, W_k, W_v and columns of W_o: moved together, the logits stay.

    So projecting and then cutting into heads is the same as giving each head smaller projections.
    """
    weights = draw.weights(SMALL)
    tokens = draw.tokens(SMALL.n_vocab, 2, 7)
    shuffled = dict(weights)
    for i in range(SMALL.n_layers):
        for name, order in (("q", heads), ("k", kv_heads), ("v", kv_heads)):
            rows = weights[ATTENTION.format(i, name)].unflatten(0, (len(order), -1))
            shuffled[ATTENTION.format(i, name)] = rows[list(order)].flatten(0, 1)
        columns = weights[ATTENTION.format(i, "o")].unflatten(1, (len(heads), -1))
        shuffled[ATTENTION.format(i, "o")] = columns[:, list(heads)].flatten(1)
    within = 2 * probe.logits_bound(SMALL, weights, tokens, dtype)
    with torch.no_grad():
        close(build(SMALL, shuffled)(tokens), build(SMALL, weights)(tokens), within, "logits after the move")


@claim(
    "heads.disjoint-without-w-o",
    needs="Transformer",
    through=("attention",),
    source="refresher §4",
    erratum="the document says that without W_o the heads' findings could not influence each other; within "
    "the sublayer they cannot, but the feed-forward after it reads all of them",
)
@pytest.mark.parametrize("head", [0, 4])
def test_without_w_o_findings_stay_in_their_stretch(impl, build, draw, dtype, device, head):
    """With W_o the identity, what a head finds stays in its own stretch of the stream.

    The head's queries are replaced. The final norm divides all of a token's numbers by one length, so the
    stretches of other heads may only have been multiplied by a common factor.
    """
    weights = draw.weights(SQUARE)
    eye = torch.eye(48, device=device).to(dtype)
    weights[ATTENTION.format(0, "o")], weights["lm_head.weight"] = eye, eye
    down = weights["model.layers.0.mlp.down_proj.weight"]
    mine = slice(8 * head, 8 * head + 8)
    queries = weights[ATTENTION.format(0, "q")].clone()
    queries[mine] = 4 * draw(8, 48) / math.sqrt(48)
    tokens = draw.tokens(48, 2, 6)

    def changes(down):
        """How far the other stretches and the head's own are from a common factor times what they were."""
        rest = {"model.layers.0.mlp.down_proj.weight": down}
        with torch.no_grad():
            a = exact64(build(SQUARE, weights | rest)(tokens))
            same(a.shape[-1], 48, "scores of a token")
            b = exact64(build(SQUARE, weights | rest | {ATTENTION.format(0, "q"): queries})(tokens))
        outside = torch.ones(48, dtype=torch.bool)
        outside[mine] = False
        kept = a * outside
        factor = (kept * b).sum(-1, keepdim=True) / (kept * kept).sum(-1, keepdim=True)
        off = (b - factor * a).abs()
        return off[..., outside].max(), off[..., mine].max(), float(b.abs().max())

    others, own, size = changes(torch.zeros_like(down))
    within = 4 * torch.finfo(dtype).eps * size
    at_most(others, within, "the change in other heads' stretches")
    at_least(own, 2 * within, f"the change in head {head}'s own stretch")
    at_least(changes(4 * down)[0], 2 * within, "the change in other stretches behind the feed-forward")


@claim(
    "heads.width-bounds-rank",
    needs="attention",
    source="refresher §4",
)
@pytest.mark.parametrize("d_head", [2, 4, 8])
def test_width_of_a_head_bounds_its_patterns(impl, draw, dtype, d_head):
    """A head of width d tells tokens apart by d numbers: its table of scores has rank d and no more.

    The scores are read back as logarithms of weights, up to a constant a row, which is taken away.
    """
    n, eps = 24, torch.finfo(dtype).eps
    q, k = draw(1, 2, n, d_head), draw(1, 2, n, d_head)
    w = exact64(probe.weights(impl.attention, q, k, scale=1 / d_head))
    at_least(w, 1e-7, "the smallest weight, far from 0 for scores of this size")
    scores = w.log() - w.log().mean(-1, keepdim=True)  # (1, 2, 24, 24)
    sizes = torch.linalg.svdvals(scores)[0]
    # Each logarithm is off by a few eps, which as noise of size n by n has norm 2 sqrt(n) times that; and the
    # singular values themselves are computed in float64, to n epsilons of the largest.
    within = 4 * eps * 2 * math.sqrt(n) + n * torch.finfo(torch.float64).eps * float(sizes.max())
    at_most(sizes[:, d_head], within, f"singular value {d_head + 1} of the scores")
    at_least(sizes[:, d_head - 1], 0.1, f"singular value {d_head} of the scores")


# --- what heads cost ---------------------------------------------------------------------------------


def projection_table(make):
    """The attention matrices of one block by the number of heads."""
    rows = []
    for n_heads in HEADS:
        found = projections(make(split_into(n_heads))).values()
        shapes = ", ".join(sorted({str(tuple(p.shape)) for p in found}))
        total = sum(p.numel() for p in found)
        width = 4096 // n_heads
        rows.append((n_heads, width, n_heads * width, "(4096, 4096)", shapes, "67.1M", f"{total / 1e6:.1f}M"))
    columns = ("n_heads", "d_head", "product", "each (document)", "each", "all four (document)", "all four")
    return Table("W_q, W_k, W_v and W_o of one block by the number of heads", columns, tuple(rows))


@claim(
    "heads.params-constant",
    needs="Transformer",
    on="meta",
    source="refresher, short version, §4, §5, §7",
)
@pytest.mark.parametrize("n_heads", HEADS)
def test_number_of_parameters_ignores_the_number_of_heads(impl, device, receipt, n_heads):
    """Splitting d_model over more heads leaves the number of parameters where it was."""
    config = split_into(n_heads)
    model = impl.Transformer(config, device=device, dtype=torch.float32)
    with torch.no_grad():
        model(torch.zeros(1, 4, dtype=torch.int64, device=device))
    found = {name: tuple(p.shape) for name, p in projections(model).items()}
    if found.keys() >= FOUR and n_heads == HEADS[-1]:
        receipt(projection_table(lambda c: impl.Transformer(c, device=device, dtype=torch.float32)))
    others = HEADS[0] if n_heads != HEADS[0] else HEADS[-1]
    other = impl.Transformer(split_into(others), device=device, dtype=torch.float32)
    same(measure.n_parameters(model), measure.n_parameters(other), f"parameters, as with {others} heads")
    if found.keys() >= FOUR:  # packed or renamed, they are in the count
        same(found, dict.fromkeys(found, (4096, 4096)), "the four matrices")


@claim(
    "heads.width-is-free",
    needs="Transformer",
    on="meta",
    source="refresher §1, §4, §5, §7",
    erratum="the document calls d_model = n_heads x d_head universal; Qwen3-0.6B has 16 heads of 128 beside "
    "a d_model of 1024, and other models differ likewise",
)
@pytest.mark.parametrize(
    "d_model, n_heads, n_kv_heads, d_head",
    [(4096, 32, 8, 128), (1600, 25, 25, 64), (1024, 16, 8, 128), (5120, 32, 8, 128), (2304, 8, 4, 256)],
    ids=["llama-3-8b", "gpt2-xl", "qwen3-0.6b", "mistral-nemo", "gemma-2-2b"],
)
def test_heads_need_not_add_up_to_the_stream(impl, device, d_model, n_heads, n_kv_heads, d_head):
    """W_q maps d_model to n_heads x d_head, whether or not the two are equal, and W_o maps back."""
    config = ONE_LAYER.but(d_model=d_model, n_heads=n_heads, n_kv_heads=n_kv_heads, d_head=d_head)
    model = impl.Transformer(config, device=device, dtype=torch.float32)
    with torch.no_grad():
        model(torch.zeros(1, 4, dtype=torch.int64, device=device))
    wide, narrow = n_heads * d_head, n_kv_heads * d_head
    expected = {"q_proj": (wide, d_model), "k_proj": (narrow, d_model), "v_proj": (narrow, d_model)}
    expected["o_proj"] = (d_model, wide)
    thin = config.but(d_head=2)
    thinner = measure.n_parameters(impl.Transformer(thin, device=device, dtype=torch.float32))
    same(
        measure.n_parameters(model) - thinner,
        cost.attention_parameters(config) - cost.attention_parameters(thin),
        "parameters more than with heads of width 2",
    )
    found = {name: tuple(p.shape) for name, p in projections(model).items()}
    if found.keys() >= FOUR:  # packed or renamed, they are in the count
        same(found, expected, "the four matrices")


def score_grids(attention, draw, n_heads, n=48):
    """Bytes of n by n tables of numbers that attention keeps for backward; a mask is none."""
    q, k, v = (draw(1, n_heads, n, 16).requires_grad_() for _ in range(3))
    kept = measure.saved(lambda: attention(q, k, v, scale=0.3))
    grids = (x for x in kept if x.shape[-2:] == (n, n) and x.numel() > n * n)  # one (n, n) is a mask
    return sum(x.nbytes for x in grids if x.is_floating_point())


@claim(
    "heads.score-grid-grows",
    needs="attention",
    gradients=True,
    source="refresher, short version, §5",
)
def test_what_grows_with_heads_is_the_score_grid(impl, draw):
    """A kernel that keeps its scores keeps one grid a head; a tiled kernel keeps none."""
    two, eight = (score_grids(impl.attention, draw, n_heads) for n_heads in (2, 8))
    same(eight, 4 * two, "bytes of scores kept with 8 heads, against 4 times those with 2 heads")


# --- following the shapes ----------------------------------------------------------------------------


def shapes_table(attention, device):
    """Ten tokens through a layer of 32 heads, with the tested attention in the middle."""

    def empty(*shape):
        return torch.empty(shape, device=device)

    x, w_o = empty(10, 4096), empty(4096, 4096)
    q, k, v = (x @ empty(4096, 4096) for _ in range(3))
    heads = [t.view(10, 32, 128).transpose(0, 1) for t in (q, k, v)]  # (32, 10, 128)
    q_heads, k_heads, v_heads = (t[None] for t in heads)
    w = probe.weights(attention, q_heads, k_heads, causal=True)[0]
    answers = attention(q_heads, k_heads, v_heads, causal=True)[0]
    merged = answers.transpose(0, 1).reshape(10, 4096)
    steps = (
        ("x", "(10, 4096)", x),
        ("Q, K, V", "(10, 4096)", q),
        ("Q, K, V split into heads", "(32, 10, 128)", heads[0]),
        ("one head's Q", "(10, 128)", heads[0][0]),
        ("weights", "(32, 10, 10)", w),
        ("weights @ V", "(32, 10, 128)", answers),
        ("concatenated heads", "(10, 4096)", merged),
        ("output after W_o", "(10, 4096)", merged @ w_o),
    )
    rows = tuple((name, printed, str(tuple(t.shape))) for name, printed, t in steps)
    title = "Ten tokens through 32 heads of 128"
    return Table(title, ("tensor", "document", "measured"), rows)


@claim(
    "heads.shapes-follow",
    needs="attention",
    on="meta",
    source="refresher §4, §7",
)
def test_shapes_through_a_layer_of_heads(impl, device, receipt):
    """A layer of 32 heads takes (10, 4096) to (10, 4096), by way of 32 answers of 128 numbers a token."""
    table = shapes_table(impl.attention, device)
    receipt(table)
    for name, printed, measured in table.rows:
        same(measured, printed, f"the shape of {name}")


@pytest.mark.receipts("heads")
def test_receipts(receipt, draw):
    import refimpl

    w = opinions(refimpl.attention, draw.of("heads.own-opinions"))
    receipt(
        opinions_table(w),
        weights_table(w),
        projection_table(lambda config: refimpl.Transformer(config, device="meta")),
        shapes_table(refimpl.attention, "meta"),
    )
