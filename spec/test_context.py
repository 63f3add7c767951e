"""Context: how long a text may be. The weights set no limit; what training has shown sets one.

Rates and scores are read in the same ways as in the rope topic. The last claims are small experiments
(`-m slow`): toy models trained in seconds, which show effects, not their size in a large model.
"""

import math

import pytest
import torch

import refimpl
from harness import SMALL, Table, at_least, at_most, between, claim, close, formula, measure, probe, same
from harness.budget import bound
from harness.checks import exact64
from refimpl import LLAMA_3_8B, cost

EPS32 = torch.finfo(torch.float32).eps


def formula_rates(d_head, base=1e4):
    """The rate of each plane, fastest first (d_head / 2,), in float64."""
    return base ** -(torch.arange(0, d_head, 2, dtype=torch.float64) / d_head)


def angle_error(position, d_head, base=1e4):
    """How far angles from a float32 table may be off, summed over planes, in radians."""
    rate = formula_rates(d_head, base)
    return float((2 * EPS32 * position * rate * (1 - rate.log())).sum())


def rounding(dtype):
    """One rounding of the answer; tables in float32 make float64 no finer than float32."""
    return max(torch.finfo(dtype).eps, EPS32)


def plane_rates(rope, device, dtype, d_head, base, reach=2**14):
    """Each plane's measured rate, fastest first (d_head / 2,)."""
    eye = torch.eye(d_head, dtype=dtype).to(device)
    rates = probe.turning_rates(rope, eye, base=base, reach=reach)
    return rates.sort(descending=True).values.unflatten(0, (-1, 2)).mean(-1)


# --- no limit in the weights -----------------------------------------------------------------------------


@claim(
    "context.no-length-in-weights",
    needs="Transformer",
    source="refresher §14, Where a context window actually comes from",
)
@pytest.mark.parametrize("n", [1, 10, 300])
def test_one_set_of_weights_runs_at_any_length(build, draw, n):
    """The same weights run at any length: no parameter has a length in its shape."""
    model = build(SMALL)

    def shapes():
        return {name: tuple(p.shape) for name, p in measure.parameters(model).items()}

    before = shapes()
    with torch.no_grad():
        logits = model(draw.tokens(SMALL.n_vocab, 1, n))
    same(bool(logits.isfinite().all()), True, "finite logits")
    same(shapes(), before, f"names and shapes of the parameters after {n} tokens")
    same(measure.n_parameters(model), cost.n_parameters(SMALL), "numbers, of which no length is a factor")


@claim(
    "context.learned-table-ends",
    needs=None,
    source="refresher §14, Where a context window actually comes from; whiteboard, Positions",
)
def test_learned_table_has_no_next_row():
    """A learned table of 512 positions serves the 512th token, and raises for the 513th."""
    table = torch.nn.Embedding(512, 8)
    same(tuple(table(torch.tensor([511])).shape), (1, 8), "the row of the 512th token")
    with pytest.raises(IndexError):
        table(torch.tensor([512]))


def float32_drift(position):
    """How far the worst plane's angle is off where it is formed in float32, d_head 128, in radians."""
    rates = formula_rates(128)
    return (position * rates - (position * rates.float()).to(torch.float64)).abs().max()


@claim(
    "context.formula-everywhere",
    needs="rope",
    source="refresher §14, Where a context window actually comes from",
    erratum="the document says that the rotation computes perfectly well at position 500,000 and for ten "
    "million tokens; measured: float32 angles are off by over 0.01 rad there and 0.3 rad here, and position "
    "16,777,217 is no float32 number",
)
@pytest.mark.parametrize("base", [1e4, 5e5])
@pytest.mark.parametrize("position", [4096, 131072, 500000, 2**20 + 1234])
def test_far_positions_follow_the_formula(impl, draw, device, dtype, position, base):
    """At position 500,000 as at 4,096, every plane has turned by what the formula says."""
    x = draw(2, 3, 1, 64).sign()  # every plane is equally long, whichever dimensions pair up
    start, end = (exact64(impl.rope(x, torch.tensor([p], device=device), base=base)) for p in (0, position))
    expected = 2 * float((position * formula_rates(64, base)).cos().sum())
    within = 2 * angle_error(position, 64, base) + 4 * rounding(dtype) * 64
    close((start * end).sum((-2, -1)), expected, within, "x there, times x at the start")
    # What the bound has to allow for, and what becomes of it further out.
    for far, least in ((500_000, 0.01), (10_000_000, 0.3)):
        between(float32_drift(far), least, 2 * EPS32 * far, f"float32's worst angle at {far}, off in radians")
    same(float(torch.tensor(2**24 + 1, dtype=torch.float32)), float(2**24), "16,777,217 in float32")


def shifted(rope, by):
    """RoPE with every position moved on."""

    def turn(x, positions, *, base):
        return rope(x, positions + by, base=base)

    return turn


@claim(
    "context.window-anywhere",
    needs="rope",
    source="whiteboard, Positions",
    erratum="the document puts the trouble at position 16,000; measured: a window that starts at 12,000 gets "
    "the logits of one that starts at 0: distance matters, position does not",
)
def test_window_far_out_reads_like_one_at_the_start(impl, draw, device, dtype):
    """A whole model gives a window of text the same logits at position 12,000 as at 0."""
    weights, tokens = draw.weights(SMALL), draw.tokens(SMALL.n_vocab, 2, 24)

    def logits(rope, device, dtype, by):
        model = refimpl.Transformer(SMALL, device=device, dtype=dtype, rope=shifted(rope, by))
        model.load_state_dict({name: w.cpu().to(dtype).to(device) for name, w in weights.items()})
        with torch.no_grad():
            return exact64(model(tokens.to(device)))

    # The budget: float32 tables at these positions, in a model of the tested dtype.
    budget = torch.float32 if dtype == torch.float64 else dtype
    table = lambda x, positions, *, base: formula.rope(x.float(), positions, base=base).to(x.dtype)  # noqa: E731
    exact, plain = logits(formula.rope, "cpu", torch.float64, 0), logits(table, "cpu", budget, 12000)
    within = 2 * bound(exact, plain, budget, terms=SMALL.d_model)
    near, far = (logits(impl.rope, device, dtype, by) for by in (0, 12000))
    close(far, near, within, "logits at 12,000, against those at 0")


# --- what training has shown -----------------------------------------------------------------------------


def unseen(rates, trained=4096, tested=16000):
    """How far new angles get from all those of the trained length, for each plane, in radians."""
    circle = 2 * math.pi
    seen = (
        torch.remainder(torch.arange(trained, dtype=torch.float64) * rates[:, None], circle).sort(-1).values
    )
    seen = torch.cat((seen[:, -1:] - circle, seen, seen[:, :1] + circle), dim=-1)
    new = torch.remainder(torch.arange(trained, tested, 23, dtype=torch.float64) * rates[:, None], circle)
    above = torch.searchsorted(seen, new).clamp(1, trained + 1)
    gaps = torch.minimum(seen.gather(1, above) - new, new - seen.gather(1, above - 1))
    return gaps.max(-1).values


def unseen_table(rates):
    """Angles that a model trained to 4,096 meets for the first time on the way to 16,000."""
    worst, circles = unseen(rates), 4096 * rates / (2 * math.pi)
    groups = (("a circle or more", circles >= 1), ("less than a circle", circles < 1))
    rows = tuple(
        (name, int(group.sum()), *(float(end) for end in torch.aminmax(worst[group])))
        for name, group in groups
        if group.any()
    )
    columns = ("turned in training", "planes", "nearest angle: best, rad", "worst, rad")
    note = "The document: past the trained length the fast rotations land at angles never seen."
    return Table("New angles past 4,096 positions, d_head 128, base 10,000", columns, rows, note)


@claim(
    "context.slow-planes-meet-new-angles",
    needs="rope",
    source="whiteboard, Positions; refresher §14",
    erratum="the document says that past the trained length the high-frequency rotations reach angles never "
    "seen; measured: 46 fast planes stay within 0.03 rad of angles seen, 18 slow ones go 0.4 to 2.7 past",
)
def test_slow_planes_meet_new_angles(impl, device, dtype, receipt):
    """Past the trained length the slow planes reach new angles; fast ones have seen their whole circle."""
    table = unseen_table(plane_rates(impl.rope, device, dtype, 128, 1e4))
    receipt(table)
    counts = [row[1] for row in table.rows]
    same(counts, [46, 18], "planes that turned a whole circle in training, and the others")
    (_, _, _, fast), (_, _, slow, _) = table.rows
    at_most(fast, 0.05, "the fast planes' newest angle, in radians from one seen")
    at_least(slow, 0.3, "the slow planes' newest angle, in radians from one seen")


@claim(
    "context.cost-per-token-grows",
    needs=None,
    source="refresher §14, Where a context window actually comes from",
    erratum="the document has training short because cost grows with the length; measured for Llama-3-8B: a "
    "token that sees 8,192 others costs 29% more than one that sees none, twice as much only at 28,600",
)
@pytest.mark.parametrize("n, gflop", [(4096, 2.1), (8192, 4.3), (131072, 68.7)])
def test_token_costs_more_the_further_it_looks(n, gflop):
    """A token's FLOPs grow by 4 n_layers d_model for each token that it attends to."""
    one = 2 * cost.matmul_parameters(LLAMA_3_8B)
    scores = LLAMA_3_8B.n_layers * cost.score_flops(LLAMA_3_8B, 1, n)
    same(scores, 4 * 32 * n * 4096, "FLOPs of its scores and averages")
    same(f"{one / 1e9:.1f}", "15.0", "GFLOP of the matrices")
    same(f"{scores / 1e9:.1f}", str(gflop), "GFLOP of its scores and averages")
    at_most(4 * 32 * 8192 * 4096 / one, 0.30, "the share added at 8,192")
    between(one / (4 * 32 * 4096), 28_000, 29_000, "the length at which scores cost as much as matrices")


# --- rescaling the rates ---------------------------------------------------------------------------------


@claim("context.interpolation-factor", needs=None, source="whiteboard, Positions")
def test_interpolation_squeezes_into_the_trained_range():
    """From 4,096 to 16,384 positions the factor is 0.25, and the last position lands at 4,095.75."""
    same(4096 / 16384, 0.25, "the factor")
    same(16383 * 0.25, 4095.75, "where the last position lands: less than one step past the last trained one")
    slowest = formula_rates(128)[-1]
    between(4095.75 * slowest, 0.47296, 0.47298, "the slowest plane's angle there, in radians")
    between(4095 * slowest, 0.47287, 0.47289, "its angle at the last trained position")


@claim("context.fractions-turn-in-proportion", needs="rope", source="whiteboard, Positions")
@pytest.mark.parametrize("position", [16380, 6, 3])
def test_interpolated_positions_turn_in_proportion(impl, draw, device, dtype, position):
    """Where fractional positions are taken, a quarter of a position turns by a quarter of its angle."""
    x = draw(2, 3, 1, 64).sign()
    squeezed = torch.tensor([position], device=device).to(torch.float32) * 0.25
    start = exact64(impl.rope(x, torch.zeros(1, dtype=torch.int64, device=device), base=1e4))
    turned = exact64(impl.rope(x, squeezed, base=1e4))
    expected = 2 * float((position / 4 * formula_rates(64)).cos().sum())
    within = 2 * angle_error(position / 4, 64) + 4 * rounding(dtype) * 64
    close((start * turned).sum((-2, -1)), expected, within, "x at a quarter, times x at the start")


@claim("context.ntk-base", needs="rope", source="refresher §14, step 4")
@pytest.mark.parametrize("factor", [4.0, 8.0])
def test_larger_base_slows_the_slow_planes_most(impl, device, dtype, factor):
    """A base raised by s^(d/(d-2)) slows the slowest plane by s and leaves the fastest as it was."""
    before, after = (
        plane_rates(impl.rope, device, dtype, 64, base, reach=2**17)
        for base in (1e4, 1e4 * factor ** (64 / 62))
    )
    # A reading is off by some roundings at 2^17 positions; the slowest plane has turned by 2 radians there.
    within = 8 * rounding(dtype) / (2**17 * after).clamp(max=1.0) + 8 * EPS32
    slower = before / after
    close(slower[0], 1.0, float(within[0]), "the fastest plane, before over after")
    close(slower[-1], factor, factor * float(within[-1]), "the slowest plane, before over after")
    at_least(slower[1:] / slower[:-1], 1.0, "each plane is slowed more than the one before")


# --- experiments -----------------------------------------------------------------------------------------

TOY = refimpl.ModelConfig(
    n_vocab=24, d_model=64, n_layers=2, n_heads=4, n_kv_heads=4, d_head=16, d_ff=64
)  # fmt: skip
TRAINED = 48
STRETCHES = ((16, 47), (48, 72), (72, 96), (96, 192), (192, 383))


def repeats(draw, n):
    """Texts (32, n) that repeat a random pattern of 5 to 15 tokens: after one round all can be foreseen."""
    period, pattern = 5 + draw.tokens(11, 32, 1), draw.tokens(TOY.n_vocab, 32, 16)
    return pattern.gather(1, torch.arange(n).expand(32, n) % period)


def losses(model, tokens):
    """In nats, for each token that could be foreseen or not (32, n - 1)."""
    logits = model(tokens[:, :-1])
    return torch.nn.functional.cross_entropy(logits.mT, tokens[:, 1:], reduction="none")


def train(model, draw, steps, n, rate):
    """Adam on fresh texts of length n, with a warm-up of 50 steps."""
    optimizer = torch.optim.Adam(model.parameters(), lr=rate)
    for step in range(steps):
        optimizer.param_groups[0]["lr"] = rate * min(1.0, (step + 1) / 50)
        optimizer.zero_grad()
        losses(model, repeats(draw, n))[:, 15:].mean().backward()
        optimizer.step()


def trained(draw):
    model = refimpl.Transformer(TOY)
    model.load_state_dict(draw.weights(TOY))
    train(model, draw, 400, TRAINED, 3e-3)
    return model


def by_stretch(model, draw):
    """The mean loss over each stretch of positions, on 32 texts eight times as long as those of training."""
    with torch.no_grad():
        found = losses(model, repeats(draw, 8 * TRAINED))
    return [float(found[:, start:end].mean()) for start, end in STRETCHES]


@pytest.mark.slow
@claim(
    "context.quality-falls-past-training",
    needs=None,
    source="refresher §14; whiteboard, Positions",
    erratum="the whiteboard has quality fall off a cliff past the trained length, not gradually; measured on "
    "a toy model: hardly any loss up to one and a half times that length, and more and more after it",
)
def test_quality_falls_past_the_trained_length(draw, receipt):
    """A toy model copies well up to its trained length, a little worse just past it, and badly far past."""
    # About 20 s. Two seeds gave 0.01 and 0.05 nats inside, 0.09 and 0.10 just past, 1.3 and 1.3 far past;
    # guessing costs 3.18. The bands leave a factor of 2 to 4 on each side.
    found = by_stretch(trained(draw), draw)
    rows = tuple((start, end, loss) for (start, end), loss in zip(STRETCHES, found, strict=True))
    receipt(Table("Loss of a toy model trained at 48 tokens", ("from", "to", "nats a token"), rows))
    at_most(found[0], 0.2, "the loss inside the trained length")
    at_least(found[-1], 0.5, "the loss at four to eight times the trained length")
    at_least(found[-1] / found[1], 3.0, "the loss far past the trained length over that just past it")


def squeezed(rope, factor):
    """RoPE with every position multiplied."""

    def turn(x, positions, *, base):
        return rope(x, positions * factor, base=base)

    return turn


@pytest.mark.slow
@claim(
    "context.interpolation-needs-tuning",
    needs=None,
    source="whiteboard, Positions; refresher §14",
    erratum="the documents say that rescaled positions replace retraining; measured on a toy model: halving "
    "positions untuned is worse than doing nothing, within the trained length too; 60 steps mend most of it",
)
def test_interpolation_needs_some_tuning(draw, receipt):
    """Interpolated positions ruin a toy model until it is tuned a little at the new length."""
    # About 45 s. Two seeds gave losses of 4.6 and 6.2 untuned, 0.5 and 0.6 after 60 steps, against 0.1 for
    # the model as it was.
    model = trained(draw)
    plain = by_stretch(model, draw)
    model.rope = squeezed(refimpl.rope, 0.5)
    untuned = by_stretch(model, draw)
    train(model, draw, 60, 2 * TRAINED, 1e-3)
    tuned = by_stretch(model, draw)
    rows = tuple(
        (start, end, *row)
        for (start, end), *row in zip(STRETCHES[:3], plain[:3], untuned[:3], tuned[:3], strict=True)
    )
    columns = ("from", "to", "as trained", "positions halved", "and tuned 60 steps")
    receipt(Table("Interpolation by 1/2 in a toy model trained at 48 tokens, nats a token", columns, rows))
    at_least(untuned[0] - plain[0], 1.0, "what halving costs within the trained length, untuned")
    at_least(untuned[1] - plain[1], 1.0, "what halving costs just past it, untuned")
    at_least(untuned[1] / tuned[1], 2.0, "the untuned loss over the tuned one")


@pytest.mark.receipts("context")
def test_receipts(receipt):
    receipt(unseen_table(plane_rates(refimpl.rope, "cpu", torch.float32, 128, 1e4)))
