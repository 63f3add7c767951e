"""RoPE: each pair of dimensions turns with position, so that a score sees only how far apart two tokens are.

Which dimensions pair up, and which way they turn, is free: every claim here is read off lengths, scores and
basis vectors, which do not care. Angles from float32 tables count as right in every dtype, float64 included,
because that is how most libraries make them; their error grows with the position, and so do the bounds.
"""

import math

import pytest
import torch

import refimpl
from harness import SMALL, Table, at_least, at_most, between, claim, close, measure, noise, probe, same
from harness.checks import exact64
from refimpl import LLAMA_3_8B, cost

EPS32 = torch.finfo(torch.float32).eps

# The refresher's receipt: one query and one key, always three apart.
PAIRS = ((0, 3), (5, 8), (105, 108), (4093, 4096))

# The refresher's rates for d_head 128 and base 10,000: exponent i, rate, positions for a full circle.
PRINTED_RATES = (
    (0, "1", "6"),
    (32, "0.1", "63"),
    (64, "0.01", "628"),
    (96, "0.001", "6,283"),
    (126, "0.000115478", "54,410"),
)


def formula_rates(d_head, base=1e4):
    """The rate of each plane, fastest first (d_head / 2,), in float64."""
    return base ** -(torch.arange(0, d_head, 2, dtype=torch.float64) / d_head)


def table_error(position, d_head, base=1e4):
    """How far a float32 angle may be off, for each plane (d_head / 2,), in radians.

    A rate is off by an epsilon or so, and by ln(1/rate) epsilons more where it was made as an exponential;
    the position multiplies that.
    """
    rate = formula_rates(d_head, base)
    return 2 * EPS32 * position * rate * (1 - rate.log())


def rounding(dtype):
    """One rounding of the answer; tables in float32 make float64 no finer than float32."""
    return max(torch.finfo(dtype).eps, EPS32)


def score(rope, q, m, k, n, **options):
    """q at position m against k at position n: (batch, n_heads) scores of (batch, n_heads, 1, d_head)."""
    here, there = (torch.tensor([p], device=q.device) for p in (m, n))
    turned = exact64(rope(q, here, **options)), exact64(rope(k, there, **options))
    return (turned[0] * turned[1]).sum((-2, -1))


def flat(draw, *shape):
    """Entries of +1 and -1: every plane is equally long, whichever dimensions pair up."""
    return draw(*shape).sign()


def flat_score(offset, d_head, base=1e4):
    """A flat vector against itself `offset` positions on: each plane gives 2 cos(offset rate)."""
    return 2 * float((offset * formula_rates(d_head, base)).cos().sum())


def basis(d_head, device, dtype):
    return torch.eye(d_head, dtype=dtype).to(device)


def planes(rates):
    """Each plane's rate once, fastest first: a plane's two dimensions report it twice."""
    return rates.sort(descending=True).values.unflatten(0, (-1, 2)).mean(-1)


# --- why position has to get in, and the older ways -----------------------------------------------------


def last_logits(model, tokens):
    with torch.no_grad():
        return exact64(model(tokens)[:, -1])


@claim(
    "rope.injects-order",
    needs="Transformer",
    through=("rope",),
    source="refresher §14; whiteboard, Positions",
)
def test_order_of_earlier_tokens_matters(build, draw, dtype):
    """Shuffling the earlier tokens of a one-layer model changes what it says after the last one."""
    # One layer, because from the second on the causal mask alone tells a token how many came before it.
    config = SMALL.but(n_layers=1)
    weights = draw.weights(config)
    tokens = draw.tokens(config.n_vocab, 8, 12)
    shuffled = torch.cat((tokens[:, :-1].flip(1), tokens[:, -1:]), dim=1)
    model = build(config, weights)
    change = (last_logits(model, tokens) - last_logits(model, shuffled)).abs().max()
    at_least(change, probe.logits_bound(config, weights, tokens, dtype), "the logits' change")


def without_positions(config, weights, causal):
    """The reference with nothing turned, and its mask on or off."""

    def attention(q, k, v, **asked):
        return refimpl.attention(q, k, v, causal=causal)

    model = refimpl.Transformer(
        config, dtype=torch.float64, rope=lambda x, positions, base: x, attention=attention
    )
    model.load_state_dict({name: w.to(torch.float64) for name, w in weights.items()})
    return model


@claim(
    "rope.mask-leaks-order",
    needs=None,
    source="refresher §14, §3; whiteboard, Positions",
    erratum="the documents say that position must be injected, since attention has no idea of order; "
    "measured: with a causal mask two layers without any position tell orders apart, only one layer cannot",
)
@pytest.mark.parametrize("n_layers", [1, 2, 3])
def test_causal_stack_knows_order_without_positions(draw, n_layers):
    """Without positions an unmasked stack is blind to order, a causal one only in its first layer."""
    config = SMALL.but(n_layers=n_layers)
    weights, tokens = draw.weights(config), draw.tokens(config.n_vocab, 8, 12)
    shuffled = torch.cat((tokens[:, :-1].flip(1), tokens[:, -1:]), dim=1)

    def change(causal):
        model = without_positions(config, weights, causal)
        return (last_logits(model, tokens) - last_logits(model, shuffled)).abs().max()

    at_most(change(causal=False), 1e-10, "the change without a mask")  # float64: rounding stays near 1e-14
    if n_layers == 1:
        at_most(change(causal=True), 1e-10, "the change under one causal layer")
    else:
        at_least(change(causal=True), 1e-3, "the change under several causal layers")


def sinusoid(positions, d_model=512):
    """The 2017 encoding (n, d_model): sines and cosines of position times rate."""
    angle = positions[:, None] * formula_rates(d_model)
    return torch.cat((angle.sin(), angle.cos()), dim=-1)


@claim(
    "rope.sinusoids-see-offsets",
    needs=None,
    source="refresher §14; whiteboard, Positions",
    erratum="the document says that positions (5, 7) and (5000, 5002) are unrelated patterns under absolute "
    "encodings; measured: two 2017 sinusoids have one dot product at both, only learned tables are unrelated",
)
def test_sinusoids_dot_product_depends_on_the_difference(draw):
    """Two sinusoidal encodings have a dot product that depends only on how far apart they are."""
    near = sinusoid(torch.tensor([5.0, 7.0], dtype=torch.float64))
    far = sinusoid(torch.tensor([5000.0, 5002.0], dtype=torch.float64))
    close(near[0] @ near[1], far[0] @ far[1], 512 * 5002 * 2.3e-16, "the dot product two positions apart")
    same(round(float(near[0] @ near[1]), 4), 231.7336, "its value at d_model 512")
    # A learned table starts as unrelated rows: there the document is right. Two dot products of 512 normal
    # numbers differ by 32 (one standard deviation); under 0.01 of that comes once in a hundred draws.
    learned = exact64(draw(64, 512))
    products = (learned[0::2] * learned[1::2]).sum(-1)
    at_least(products.max() - products.min(), 1.0, "how much a learned table's dot products differ")


# --- a dot product sees no absolute direction ------------------------------------------------------------


@claim("rope.common-turn", needs="rope", source="refresher §14, step 1")
@pytest.mark.parametrize("position", [0, 1, 5, 4096])
def test_query_and_key_at_one_position_keep_their_score(impl, draw, dtype, position):
    """Query and key at one and the same position have the score they had before turning."""
    q, k = draw(2, 3, 1, 64), draw(2, 3, 1, 64)
    before = (exact64(q) * exact64(k)).sum((-2, -1))
    size = exact64(q).norm(dim=-1) * exact64(k).norm(dim=-1)
    # Both turn by the same angle, so that an error of the angle cancels whatever the position.
    within = 4 * rounding(dtype) * size[..., 0]
    close(score(impl.rope, q, position, k, position, base=1e4), before, within, "the score")


@claim("rope.position-zero", needs="rope", source="refresher §14; whiteboard, Positions")
def test_position_zero_is_the_identity(impl, draw):
    """At position 0 nothing turns: what goes in comes out, bit for bit."""
    x = draw(2, 3, 1, 64)
    same(impl.rope(x, torch.zeros(1, dtype=torch.int64, device=x.device), base=1e4), x, "x at position 0")


@claim("rope.keeps-length", needs="rope", source="refresher §14, step 2; whiteboard, Positions")
@pytest.mark.parametrize("d_head", [2, 6, 64, 128])
def test_turning_keeps_a_vectors_length(impl, draw, device, dtype, d_head):
    """Turning a vector leaves its length where it was, at any position."""
    x = draw(2, 3, 5, d_head)
    positions = torch.tensor([1, 7, 105, 4096, 131072], device=device)
    ratio = exact64(impl.rope(x, positions, base=1e4)).norm(dim=-1) / exact64(x).norm(dim=-1)
    close(ratio, 1.0, 4 * rounding(dtype), "the length over what it was")


@claim("rope.linear", needs="rope", source="refresher §14; whiteboard, Positions")
@pytest.mark.parametrize("position", [1, 105, 4096])
def test_nothing_is_added(impl, draw, device, dtype, position):
    """Position turns a vector and adds nothing to it: sums and multiples pass through, zero stays zero."""
    x, y, at = flat(draw, 2, 3, 1, 12), flat(draw, 2, 3, 1, 12), torch.tensor([position], device=device)

    def turn(x):
        return exact64(impl.rope(x, at, base=1e4))

    # 2x - 3y has entries of 1 and 5, exact in every dtype; a plane of it is at most 5 sqrt(2) long.
    within = 4 * rounding(dtype) * 5 * math.sqrt(2)
    close(turn(2 * x - 3 * y), 2 * turn(x) - 3 * turn(y), within, "2x - 3y turned")
    same(turn(torch.zeros_like(x)), torch.zeros_like(exact64(x)), "zero turned")


# --- each vector turned by its own position --------------------------------------------------------------


@claim("rope.planes", needs="rope", source="refresher §14, steps 2 and 3, The code")
@pytest.mark.parametrize("d_head", [2, 6, 12, 64])
def test_dimensions_turn_in_pairs(impl, device, dtype, d_head):
    """Dimensions pair up: each turns into exactly one other and back, and every one of them turns."""
    positions = torch.tensor([3, 61, 997, 4999], device=device)  # no plane is at or near rest in all four
    one_hot = basis(d_head, device, dtype)[:, None, None].repeat(1, 1, 4, 1)  # (d_head, 1, 4, d_head)
    reach = exact64(impl.rope(one_hot, positions, base=1e4))[:, 0].abs().amax(1)  # (from, to)
    own = torch.eye(d_head, dtype=torch.bool)
    partner = reach.masked_fill(own, -1).argmax(-1)
    same(partner[partner], torch.arange(d_head), "the partner of a dimension's partner")
    pair = own | torch.eye(d_head, dtype=torch.bool)[partner]
    at_least(reach[~own & pair], 0.02, "the part that turns into the partner")
    at_most(reach.masked_fill(pair, 0.0), 2 * rounding(dtype), "the part that leaks out of the plane")


@claim("rope.angle-proportional", needs="rope", source="refresher §14, step 2; whiteboard, Positions")
@pytest.mark.parametrize("position", [2, 45, 777, 3001])
def test_angle_is_position_times_rate(impl, device, dtype, position):
    """A plane's angle is its position times its own rate: a bit further on, always a bit further round."""
    eye = basis(16, device, dtype)
    rate = probe.turning_rates(impl.rope, eye, base=1e4)
    at = torch.tensor([0, position], device=device)
    turned = exact64(impl.rope(eye[:, None, None].repeat(1, 1, 2, 1), at, base=1e4))[:, 0]  # (16, 2, 16)
    # The rate was read off 1024 positions, with a reading error there of some roundings.
    within = (4 + 4 * position / 1024) * rounding(dtype) + 2 * float(table_error(position, 16).max())
    close((turned[:, 0] * turned[:, 1]).sum(-1), (position * rate).cos(), within, "cosine of the angle")


@claim("rope.composition", needs="rope", source="refresher §14; whiteboard, Positions")
@pytest.mark.parametrize("m, n", [(3, 5), (100, 5), (4000, 96)])
def test_turns_add_up(impl, draw, device, dtype, m, n):
    """Turning to position m and then by n more is turning to m + n."""
    x = flat(draw, 2, 3, 1, 64)
    by = {p: torch.tensor([p], device=device) for p in (m, n, m + n)}
    twice = impl.rope(impl.rope(x, by[m], base=1e4), by[n], base=1e4)
    # Two roundings one way and one the other, of entries up to sqrt(2).
    within = 6 * rounding(dtype) + 2 * math.sqrt(2) * float(table_error(m + n, 64).max())
    close(twice, impl.rope(x, by[m + n], base=1e4), within, "x turned twice, against once")


POSITIONS = {
    "prefill": (0, 1, 2, 3, 4),
    "window": (211, 212, 213, 214, 215),
    "gaps": (0, 2, 3, 40, 700),
    "repeats": (9, 9, 0, 0, 9),
    "backwards": (60, 7, 30, 1, 4),
    "swapped": (0, 2, 1, 3, 4),  # its ends are those of a run
    "far": (8189, 8190, 8191, 8192, 8193),
}


@claim("rope.own-position", needs="rope", source="refresher §14, step 2; whiteboard, Positions")
@pytest.mark.parametrize("n_heads", [3, 5])
@pytest.mark.parametrize("kind", POSITIONS)
def test_each_row_turns_by_its_own_position(impl, draw, device, dtype, kind, n_heads):
    """Every row turns by the position given for it, whatever its neighbours' positions are."""
    # As many heads as tokens (5) would hide a turn along the wrong axis from a check of shapes.
    x, positions = draw(2, n_heads, 5, 12), torch.tensor(POSITIONS[kind], device=device)
    together = impl.rope(x, positions, base=1e4)
    alone = [
        impl.rope(x[:, :, i : i + 1].contiguous(), positions[i : i + 1].clone(), base=1e4) for i in range(5)
    ]
    within = (
        float(exact64(x).abs().max())
        * 2
        * (rounding(dtype) + float(table_error(max(POSITIONS[kind]), 12).max()))
    )
    close(together, torch.cat(alone, dim=2), within, "rows together, against one by one")


# --- the score sees the offset, and only the offset ------------------------------------------------------


def query_and_key(draw):
    """A query and a key that roughly agree, (2, 3, 1, 64): wrong angles show most in parallel vectors."""
    q = flat(draw, 2, 3, 1, 64)
    return q, q * draw.uniform(0.5, 1.5, 2, 3, 1, 64)


def offsets_table(rope, draw):
    """The refresher's receipt for one query and one key of our own, and its range."""
    q, k = (x[:1, :1] for x in query_and_key(draw.of("rope.relative-offset")))
    scores = [float(score(rope, q, m, k, n, base=1e4)) for m, n in PAIRS]
    spread = noise((max(scores) - min(scores)) / 64, 1e-4)
    return Table(
        "A query and a key, three positions apart",
        ("query m", "key n", "m - n", "document", "measured"),
        tuple((m, n, m - n, "-1.1905", value) for (m, n), value in zip(PAIRS, scores, strict=True)),
        f"Range over d_head: {spread}; the document's is 1.7e-08 (1.073e-06 / 64). Its vectors are not ours.",
    )


@claim(
    "rope.relative-offset",
    needs="rope",
    source="refresher, short version, §14; whiteboard, Positions",
    erratum="the refresher calls a range of 1.073e-06 on 1.1905 seven equal digits, the whiteboard has "
    "scores identical; measured: it is six digits, and with float32 tables fewer as positions grow",
)
@pytest.mark.parametrize(
    "m, n", [*PAIRS, (15997, 16000), (131069, 131072), (499997, 500000), (8, 5), (4096, 4093)]
)
def test_score_depends_only_on_the_offset(impl, draw, dtype, receipt, m, n):
    """Sliding query and key along together leaves their score where it was."""
    if (m, n) == PAIRS[0]:
        receipt(offsets_table(impl.rope, draw))
    q, k = query_and_key(draw)
    first, last = (0, n - m) if n > m else (m - n, 0)
    slid, home = score(impl.rope, q, m, k, n, base=1e4), score(impl.rope, q, first, k, last, base=1e4)
    # Four angles, each as wrong as a float32 table may be; a plane of q and k is worth at most 2 * 1.5.
    angles = sum(float(table_error(p, 64).sum()) for p in (m, n, first, last))
    close(slid, home, 3 * angles + 4 * rounding(dtype) * 64, "the score, against the one from position 0")
    at_least(1.073e-06 / 1.1905, 10**-6.5, "the document's own range, relative: seven digits would be 1e-07")


def falling_table(rope, x):
    """The score of one vector against itself further on, over d_head: 2 cos(offset rate) a plane."""
    offsets = (*range(17), 24, 32, 48, 64, 96, 128, 192, 256, 384, 512, 768, 1024)
    rows = tuple((n, float(score(rope, x, 0, x, n, base=1e4)) / x.shape[-1]) for n in offsets)
    note = "d_head 64; the key is the query's own vector, of 1 and -1, so that its score on the spot is 1."
    return Table("Score of one query and key by offset", ("offset", "measured"), rows, note)


@claim("rope.offset-matters", needs="rope", source="refresher §14, §15; whiteboard, Positions")
@pytest.mark.parametrize("start", [0, 105, 4093, 131069])
def test_score_changes_with_the_offset(impl, draw, receipt, start):
    """A vector scores less against itself three positions on than on the spot, near the start and far out."""
    # Exactly 2 cos(3 rate) a plane: 0.73 of 64. An implementation that turns nothing passes every claim of
    # invariance, with a range of exactly 0.
    x = flat(draw, 2, 3, 1, 64)
    if start == 0:
        table = falling_table(impl.rope, x[:1, :1])
        receipt(table)
        by_offset = dict(table.rows)
        at_least(by_offset[0] - by_offset[3], 0.15, "the same in the table")
    fall = score(impl.rope, x, start, x, start, base=1e4) - score(impl.rope, x, start, x, start + 3, base=1e4)
    at_least(fall / 64, 0.15, "how much the score falls over three positions, over d_head")


@claim("rope.worked-example", needs="rope", source="whiteboard, Positions; refresher §14, step 2")
@pytest.mark.parametrize("m, n", [(5, 2), (105, 102)])
def test_two_dimensions_by_hand(impl, device, dtype, m, n):
    """The whiteboard's two vectors in a plane of rate 0.3 score 1.0767 at offset 3, wherever they stand."""
    # d_head 4 and base (1/0.3)^2 give the rates 1 and 0.3. Which dimensions have 0.3, and which of the two
    # turns towards the other, is read off the basis vectors.
    base, eye = (1 / 0.3) ** 2, basis(4, device, dtype)
    a, b = (probe.turning_rates(impl.rope, eye, base=base) - 0.3).abs().argsort()[:2].tolist()
    one = torch.ones(1, dtype=torch.int64, device=device)
    towards = float(impl.rope(eye[a].reshape(1, 1, 1, 4), one, base=base).flatten()[b])
    a, b = (a, b) if towards > 0 else (b, a)
    q, k = ((x * eye[a] + y * eye[b]).reshape(1, 1, 1, 4) for x, y in ((1.0, 0.5), (0.4, 0.9)))
    exact = 0.85 * math.cos(0.9) + 0.7 * math.sin(
        0.9
    )  # q . k, and their cross product, at an angle of 3 * 0.3
    same(round(exact, 4), 1.0767, "the whiteboard's figure")
    size = math.hypot(1, 0.5) * math.hypot(0.4, 0.9)
    within = size * (
        4 * rounding(dtype) + float(table_error(m, 4, base).max() + table_error(n, 4, base).max())
    )
    close(score(impl.rope, q, m, k, n, base=base), exact, within, "the score")


@claim(
    "rope.neighbours-apart",
    needs="rope",
    source="refresher §14, §15",
    dtypes=("bfloat16", "float16"),
)
@pytest.mark.parametrize("position", [257, 2049, 4097, 8190])
def test_neighbours_stay_apart_in_16_bits(impl, draw, dtype, position):
    """With 16-bit vectors too, neighbouring positions stay different positions."""
    # bfloat16 has all integers up to 256 and float16 up to 2048: positions in the vectors' own dtype fall
    # together. Two planes: one radian a position, and a hundredth of one.
    x = flat(draw, 2, 3, 1, 4)
    expected = flat_score(1, 4)
    within = 4 * 4 * rounding(dtype) + 4 * float(table_error(position, 4).sum())
    close(
        score(impl.rope, x, position, x, position + 1, base=1e4),
        expected,
        within,
        "the score one position on",
    )
    close(
        score(impl.rope, x, position - 1, x, position, base=1e4),
        expected,
        within,
        "the score one position back",
    )


@claim(
    "rope.angles-wider-than-16-bits",
    needs="rope",
    source="refresher §14, §15",
    dtypes=("bfloat16", "float16"),
)
@pytest.mark.parametrize("position", [77, 1001, 1857, 4096])
def test_angles_are_formed_in_wider_numbers(impl, draw, dtype, position):
    """With 16-bit vectors too, angles are right: rates and their products with positions are wider."""
    # d_head 6: the second plane's rate, 0.0464, is no 16-bit number.
    x = flat(draw, 2, 3, 1, 6)
    within = 2 * (3 * 2 * rounding(dtype) + 2 * float(table_error(position, 6).sum()))
    close(score(impl.rope, x, 0, x, position, base=1e4), flat_score(position, 6), within, "the score")


# --- many rates ------------------------------------------------------------------------------------------


@claim("rope.fastest-turns-a-radian", needs="rope", source="refresher §14, step 4")
@pytest.mark.parametrize("d_head, base", [(2, 1e4), (64, 1e4), (64, 5e5)])
def test_fastest_plane_turns_one_radian_a_position(impl, device, dtype, d_head, base):
    """The fastest plane turns by one radian a position, whatever the base."""
    fastest = probe.turning_rates(impl.rope, basis(d_head, device, dtype), base=base).max()
    close(fastest, 1.0, 4 * rounding(dtype) / 1024 + 2 * EPS32, "the fastest rate")


@claim("rope.rates-differ", needs="rope", source="refresher §14, step 4; whiteboard, Positions")
def test_no_two_planes_share_a_rate(impl, device, dtype):
    """No two planes turn at the same rate: each is clearly slower than the one before."""
    rates = planes(probe.turning_rates(impl.rope, basis(16, device, dtype), base=1e4))
    at_least(rates, 1e-6, "the slowest rate")
    at_most(rates[1:] / rates[:-1], 0.5, "one plane's rate over the next faster one's")  # exactly 0.316


@claim("rope.rates-geometric", needs="rope", source="refresher §14, step 4; whiteboard, Positions")
@pytest.mark.parametrize("base", [1e4, 5e5])
def test_rates_fall_by_one_factor(impl, device, dtype, base):
    """From plane to plane the rate falls by one and the same factor, from the fastest to the slowest."""
    rates = planes(probe.turning_rates(impl.rope, basis(128, device, dtype), base=base, reach=2**14))
    # Slow planes have turned least, so that a rounding weighs most there.
    reading = 8 * rounding(dtype) / (2**14 * rates[:-1]).clamp(max=1.0) + 16 * EPS32
    steps = rates[1:] / rates[:-1]
    close(steps, steps[:8].median(), reading, "one plane's rate over the next faster one's")


@claim("rope.base-sets-the-slowest", needs="rope", source="refresher §14, step 4")
@pytest.mark.parametrize("base", [1e2, 1e4, 5e5])
def test_slowest_rate_follows_the_base(impl, device, dtype, base):
    """The base that is given sets how slow the slowest plane is: base^(2/d_head - 1)."""
    rates = planes(probe.turning_rates(impl.rope, basis(64, device, dtype), base=base, reach=2**17))
    slowest = base ** (2 / 64 - 1)
    within = 4 * rounding(dtype) / 2**17 + float(table_error(1, 64, base)[-1])
    close(rates[-1], slowest, within, "the slowest rate")


def rates_table(rates):
    """The refresher's table of d_head 128, its rows at their exponents i; rates (64,), fastest first."""
    turns = [float(rates[i // 2]) for i, _, _ in PRINTED_RATES]
    rows = tuple(
        (i, i // 2, theta, rate, circle, round(2 * math.pi / rate) if rate else "none")
        for (i, theta, circle), rate in zip(PRINTED_RATES, turns, strict=True)
    )
    columns = ("exponent i", "plane", "document", "rate", "document", "full circle, positions")
    return Table("Rates of RoPE's planes, d_head 128, base 10,000", columns, rows)


@claim(
    "rope.rates",
    needs="rope",
    source="refresher §14, step 4, appendix; whiteboard, Positions",
    erratum="the document's table and notation call i the plane; measured: its rows 0, 32, 64, 96, 126 "
    "are the planes 0, 16, 32, 48, 63 of 64, and i is the exponent's numerator",
)
@pytest.mark.parametrize(
    "d_head, base",
    [(2, 1e4), (6, 1e4), (64, 1e4), (64, 5e5), (64, 5e6), (128, 1e4), (128, 5e5), (256, 1e4)],
)
def test_rates_are_powers_of_the_base(impl, device, dtype, receipt, d_head, base):
    """Plane p of d_head/2 turns by base^(-2p/d_head) a position, and has two dimensions."""
    found = probe.turning_rates(impl.rope, basis(d_head, device, dtype), base=base)
    expected = formula_rates(d_head, base)
    within = 4 * rounding(dtype) / 1024 + table_error(1, d_head, base)
    if (d_head, base) == (128, 1e4):
        receipt(rates_table(planes(found)))
    both = found.sort(descending=True).values.unflatten(0, (-1, 2))  # (plane, its two dimensions)
    close(both, expected[:, None].expand(-1, 2), within[:, None].expand(-1, 2), "rates, fastest first")
    if (d_head, base) == (128, 1e4):
        at_least((planes(found)[32] - 0.1).abs(), 0.05, "plane 32's distance to the rate printed for i = 32")


@claim(
    "rope.printed-rates",
    needs=None,
    source="refresher §14, step 4",
)
@pytest.mark.parametrize("i, theta, circle", PRINTED_RATES)
def test_printed_rates(i, theta, circle):
    """The printed rates and circles are base^(-i/d_head) and two pi over it, for d_head 128."""
    exact = 10_000 ** (-i / 128)
    same(f"{exact:.6g}", theta, "the rate")
    same(f"{2 * math.pi / exact:,.0f}", circle, "positions for a full circle")


@claim(
    "rope.one-rate-near-repeats",
    needs=None,
    source="refresher §14, step 4",
    erratum="the document says that with one rate the offsets 3 and 3 + 2 pi / theta score the same; "
    "measured: at theta = 1 no whole offset repeats; the nearest under 5,000 is 710 on, off by 6e-05 rad",
)
def test_one_rate_nearly_repeats(draw):
    """With one rate for all planes, scores 710 positions on nearly repeat; with RoPE's rates they do not."""
    offsets = torch.arange(1, 5000, dtype=torch.float64)
    phase = torch.remainder(offsets + math.pi, 2 * math.pi) - math.pi
    nearest = int(phase.abs().argmin())
    same(int(offsets[nearest]), 710, "the offset that comes nearest to whole circles")
    between(phase[nearest].abs(), 5.9e-5, 6.1e-5, "how far from whole circles it is, in radians")
    one_rate = 64 * math.cos(3) - 64 * math.cos(713)
    at_most(abs(one_rate), 1e-3, "a flat vector's scores at 3 and 713, one rate: their difference")
    at_least(abs(flat_score(3, 64) - flat_score(713, 64)), 1.0, "the same difference with RoPE's rates")


@claim(
    "rope.angles-pin-the-offset",
    needs="rope",
    source="refresher §14, step 4",
    erratum="the document says that all planes together pin the offset exactly; measured: the fastest "
    "plane's angle alone does, for whole positions, and the score does not: different offsets score alike",
)
def test_angles_tell_offsets_apart_but_scores_do_not(impl, draw, device, dtype):
    """One plane alone turns every position to an angle of its own; a score is shared by several offsets."""
    positions = torch.arange(
        0, 41, device=device
    )  # 44 comes within 0.018 of 7 circles; up to 40, 0.15 is the least
    one_plane = exact64(impl.rope(torch.ones(1, 1, 41, 2, dtype=dtype).to(device), positions, base=1e4))[0, 0]
    apart = torch.linalg.vector_norm(one_plane[:, None] - one_plane[None], dim=-1)
    apart.fill_diagonal_(torch.inf)
    at_least(apart.min(), 0.1, "the nearest two positions in one plane")  # 0.126 for 22 positions apart
    x = flat(draw, 1, 1, 1, 64).expand(1, 1, 400, 64).contiguous()
    turned = exact64(impl.rope(x, torch.arange(400, device=device), base=1e4))[0, 0]
    scores = (turned @ turned[0]).sort().values / 64
    at_most(
        (scores[1:] - scores[:-1]).min(), 1e-4, "the nearest two scores of different offsets, over d_head"
    )


def turns_table():
    """How far the slowest of 64 planes has turned by the end of a context, and how many never come round."""
    rows = []
    for base in (10_000, 500_000):
        rates = formula_rates(128, float(base))
        for length in (4096, 8192, 131072):
            turns = length * rates / (2 * math.pi)
            rows.append((base, length, float(360 * turns[-1]), int((turns < 1).sum())))
    return Table(
        "What slow planes do over a context, d_head 128",
        ("base", "positions", "slowest turns, degrees", "planes short of a circle"),
        tuple(rows),
        "The document: the slow planes have barely begun to turn by the end of a long context.",
    )


@claim(
    "rope.slow-planes-turn-in-long-contexts",
    needs=None,
    source="refresher §14, step 4",
    erratum="the document says that the slow planes have barely begun to turn by the end of a long context; "
    "measured at its base of 10,000: 27 degrees at 4,096 positions, 54 at 8,192, but 2.4 circles at 131,072",
)
def test_slow_planes_come_round(receipt):
    """At base 10,000 the slowest plane turns 54 degrees in 8,192 positions, two circles in 131,072."""
    table = turns_table()
    receipt(table)
    degrees = {(base, length): angle for base, length, angle, _ in table.rows}
    between(degrees[10_000, 8192], 53, 55, "the slowest plane's turn in 8,192 positions, degrees")
    at_least(degrees[10_000, 131072], 720, "its turn in 131,072 positions, degrees")
    at_most(degrees[500_000, 131072], 20, "the same at base 500,000, degrees")
    same([row[-1] for row in table.rows], [18, 14, 0, 32, 29, 15], "planes that never come round")


@claim(
    "rope.base-of-llama-3",
    needs=None,
    source="refresher §14, appendix",
    erratum="the document's notation lists 10,000^(-i/128) for Llama-3-8B; its published base is 500,000, "
    "so that the slowest circle takes 2,559,196 positions, not 54,410",
)
def test_llama_3_turns_more_slowly():
    """Llama-3-8B's base is 500,000: its slowest plane comes round after 2,559,196 positions."""
    same(LLAMA_3_8B.rope_base, 500_000.0, "Llama-3-8B's base")
    circle = 2 * math.pi / formula_rates(LLAMA_3_8B.d_head, LLAMA_3_8B.rope_base)[-1]
    same(round(float(circle)), 2_559_196, "positions for its slowest circle")
    at_least(circle / 54_410, 47, "the same, over the document's")


# --- inside a model --------------------------------------------------------------------------------------


@claim("rope.no-parameters", needs="Transformer", source="refresher, short version, §14")
@pytest.mark.parametrize("base", [1e4, 5e5])
def test_positions_have_no_parameters(build, draw, device, base):
    """A model has no parameters for positions: matrices, tables of tokens and gains are all there is."""
    config = SMALL.but(rope_base=base)
    model = build(config)
    with torch.no_grad():
        model(draw.tokens(config.n_vocab, 1, 5))
    same(measure.n_parameters(model), cost.n_parameters(config), "parameters")


@claim("rope.after-projection", needs="Transformer", source="refresher §14, §8")
@pytest.mark.parametrize("base", [1e4, 5e5])
def test_queries_and_keys_turn_after_their_projections(build, draw, dtype, base):
    """A quarter turn of W_q and W_k within RoPE's planes changes nothing, and one across its planes does.

    Turns in one plane commute, so that a common one cancels between query and key. Were the stream turned
    before the projections, any common turn would. In bfloat16 what a turn across planes changes is two to
    three times the rounding.
    """
    config = SMALL.but(rope_base=base, d_model=48)  # six heads' width, so that the stream could be turned
    weights, tokens = draw.weights(config), draw.tokens(config.n_vocab, 2, 9)

    def logits(order, signs):
        """With the rows of each head's W_q and W_k in another order, some of them negative."""
        turned = {
            name: (w.unflatten(0, (-1, 8))[:, order] * w.new_tensor(signs)[:, None]).flatten(0, 1)
            for name, w in weights.items()
            if name.endswith(("q_proj.weight", "k_proj.weight"))
        }
        with torch.no_grad():
            return exact64(build(config, weights | turned)(tokens))

    as_drawn = logits(range(8), [1] * 8)
    within = 2 * probe.logits_bound(config, weights, tokens, dtype)
    in_planes = logits([4, 5, 6, 7, 0, 1, 2, 3], [-1] * 4 + [1] * 4)  # (a, b) of plane j becomes (-b, a)
    close(in_planes, as_drawn, within, "logits after a quarter turn in each plane")
    across = logits([1, 0, 3, 2, 5, 4, 7, 6], [-1, 1] * 4)
    at_least((across - as_drawn).abs().max(), within, "what a quarter turn across planes changes")


def exact_logits(config, weights, tokens, rope=refimpl.rope):
    """The reference's logits in float64."""
    with torch.no_grad():
        return probe.reference(config, weights, torch.float64, rope=rope)(tokens.cpu())


@claim("rope.base-is-the-configs", needs="Transformer", source="refresher §14")
def test_base_is_the_configs(build, draw, dtype):
    """A model turns by the base that its config names, and not by one of its own.

    A model whose logits are not the reference's at any base is no case for this claim.
    """
    off = []
    for base in (1e2, 1e4, 5e5):
        config = SMALL.but(n_layers=1, rope_base=base, norm_eps=1e-12)
        weights, tokens = draw.weights(config), draw.tokens(config.n_vocab, 2, 9)
        with torch.no_grad():
            found = exact64(build(config, weights)(tokens))[..., : config.n_vocab]
        error = found - exact_logits(config, weights, tokens)
        off.append(float(error.abs().max()) / probe.logits_bound(config, weights, tokens, dtype))
    if not min(off) <= 1:
        raise NotImplementedError("not offered: its logits are others at any base")
    at_most(max(off), 1.0, "the logits' largest error, over what rounding explains")


@claim("rope.goes-on-in-long-texts", needs="Transformer", source="refresher §14")
def test_positions_go_on_in_long_texts(build, draw, dtype):
    """In a text of 1,100 tokens the last logits are as right as the first ones: positions do not run out.

    Tables of 512 and of 1,024 positions end inside it. A model whose first nine tokens have other logits
    already is no case for this claim.
    """
    # One head, since each scores a million pairs, and an eps too small to show, since libraries differ in it.
    config = SMALL.but(n_layers=1, n_heads=1, n_kv_heads=1, norm_eps=1e-12)
    weights, tokens = draw.weights(config), draw.tokens(config.n_vocab, 1, 1100)

    def by_float32_tables(x, positions, *, base):  # rates that are off by as much as table_error allows
        return refimpl.rope(x, positions * (1 + 2 * EPS32), base=base)

    exact = exact_logits(config, weights, tokens)
    of_tables = (exact_logits(config, weights, tokens, by_float32_tables) - exact).abs().max()
    with torch.no_grad():
        found = exact64(build(config, weights)(tokens))
        at_least(found.shape[-1], config.n_vocab, "scores of a token")
        error = (found[..., : config.n_vocab] - exact).abs().amax((0, 2))  # (1100,)
        within = probe.logits_bound(config, weights, tokens, dtype) + of_tables
    if not float(error[:9].max()) <= float(within):
        raise NotImplementedError("not offered: its logits are others from the first tokens on")
    at_most(error.max(), float(within), "the logits' largest error")


@claim(
    "rope.blocks-absorption",
    needs="rope",
    source="refresher §14, Where a context window actually comes from",
)
@pytest.mark.parametrize("offset", [1, 30])
def test_no_one_matrix_absorbs_both_projections(impl, draw, dtype, offset):
    """Turned queries and keys cannot share one folded matrix W_q W_k^T: it would change with the offset."""
    w_q, w_k = flat(draw, 1, 1, 9, 16), flat(draw, 1, 1, 9, 16)  # 9 inputs of width 9: the basis vectors

    def folded(m, n):
        at = (torch.full((9,), p, device=w_q.device) for p in (m, n))
        q, k = (exact64(impl.rope(w, p, base=1e4)) for w, p in zip((w_q, w_k), at, strict=True))
        return (q @ k.mT)[0, 0]  # (9, 9): the matrix between two inputs at m and n

    plain = (exact64(w_q) @ exact64(w_k).mT)[0, 0]
    within = 16 * (4 * rounding(dtype) + 2 * float(table_error(7, 16).max()))
    close(folded(7, 7), plain, within, "at one position: W_q W_k^T as it is")
    at_least((folded(7, 7 + offset) - plain).norm() / plain.norm(), 0.1, "its change with the offset")


@pytest.mark.receipts("rope")
def test_receipts(receipt, draw):
    rates = planes(probe.turning_rates(refimpl.rope, torch.eye(128), base=1e4))
    x = flat(draw.of("rope.offset-matters|start=0"), 2, 3, 1, 64)[:1, :1]
    receipt(
        offsets_table(refimpl.rope, draw),
        falling_table(refimpl.rope, x),
        rates_table(rates),
        turns_table(),
    )
