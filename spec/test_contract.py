"""The contract: what any function of tensors owes its caller, whatever it computes.

It writes to nothing it was given, remembers nothing, answers in the dtype and on the device it was asked in,
keeps the rows of a batch apart, reads a tensor by its strides, and lets gradients through. Each of the four
functions is asked in turn, then a whole model.
"""

import math

import pytest
import torch

from harness import SMALL, agrees, at_least, claim, close, formula, gradients, measure, probe, same
from harness.checks import exact64

EVERY_DTYPE = ("float32", "bfloat16", "float16")
LAYOUTS = ("transposed", "sliced", "offset", "expanded")
WRITABLE = pytest.mark.parametrize("layout", ["plain", "transposed", "sliced"])
SIZES = {"zeros": 0.0, "ordinary": 1.0, "large": 30.0}


# --- what is asked ---------------------------------------------------------------------------------------


def writes_nothing(f, layout, *inputs, **options):
    """The inputs, plain or as views, are afterwards, bit for bit, what they were."""
    inputs = [laid_out(x, layout)[layout == "plain"] for x in inputs]
    before = [x.clone() for x in inputs]
    f(*inputs, **options)
    for i, (x, old) in enumerate(zip(inputs, before, strict=True)):
        same(x, old, f"input {i} after the call")


def remembers_nothing(f, *calls):
    """Every call repeats itself bit for bit in another order, and reads anew what was written to in between.

    What an answer should be is the matter of other claims. In the end the first call's inputs, one by one,
    are doubled in place, as an optimizer writes to weights.
    """

    def repeats(answer, before, what):
        same(answer.nan_to_num(), before.nan_to_num(), what)  # NaN is not equal to itself

    first = [f(*inputs, **options) for inputs, options in calls]
    kept = [answer.clone() for answer in first]
    for i in reversed(range(len(calls))):
        inputs, options = calls[i]
        repeats(f(*inputs, **options), kept[i], f"call {i}, made again after others")
    for i, answer in enumerate(first):
        repeats(answer, kept[i], f"the first answer of call {i}, after later calls")
    inputs, options = calls[0]
    for i, x in enumerate(inputs):
        f(*inputs, **options)
        x.mul_(2)
        answer = f(*inputs, **options).clone()
        copies = [x.clone() for x in inputs]
        repeats(answer, f(*copies, **options), f"input {i}, written to since the last call, against another")


def answers_in_kind(f, *inputs, **options):
    """The answer as it came has the dtype and the device of the first input."""
    answer, x = f.raw(*inputs, **options), inputs[0]
    same(
        (str(answer.dtype), answer.device.type),
        (str(x.dtype), x.device.type),
        "the answer's dtype and device",
    )


def is_finite(f, *inputs, **options):
    same(bool(f(*inputs, **options).isfinite().all()), True, "finite everywhere")


def keeps_rows_apart(f, per_row, shared, **options):
    """A row of a batch of two different rows is what it is alone, and does not feel the other.

    per_row: how many of the inputs have a row for each batch element; the others are shared.
    """

    def rows_alone(f, *inputs):
        parts = ([x[i : i + 1] for x in inputs[:per_row]] + list(inputs[per_row:]) for i in range(2))
        return torch.cat([f(*part, **options) for part in parts])

    inputs, dtype = shared, shared[0].dtype
    together = f(*inputs, **options)
    spread = float(exact64(together).abs().max())
    within = 4 * torch.finfo(dtype).eps * math.sqrt(inputs[0].shape[-1]) * spread
    close(rows_alone(f, *inputs), together, within, "each row alone, against both together")
    swapped = [torch.cat((x[:1], x[1:].flip(-1) * 2)) for x in inputs[:per_row]] + list(inputs[per_row:])
    same(f(*swapped, **options)[:1], together[:1], "the first row, where the second is another")


def laid_out(x, layout):
    """The same values in another place: a view that is not contiguous, and a plain tensor of its values."""
    if layout == "transposed" and x.ndim == 4:  # (batch, n, n_heads, d) as a projection leaves it
        view = x.transpose(1, 2).contiguous().transpose(1, 2)
    elif layout == "transposed" and x.ndim > 1:
        view = x.mT.contiguous().mT
    elif layout == "expanded" and x.ndim > 1:  # one row's memory for all
        view = x[:1].expand_as(x)
    elif layout == "offset":  # starts inside a larger buffer
        view = torch.cat((torch.full_like(x[:1], 7.0), x))[1:]
    else:  # every second number of a buffer
        view = torch.stack((x, torch.full_like(x, 7.0)), dim=-1).flatten(-2)[..., ::2]
    return view, view.clone(memory_format=torch.contiguous_format)


def reads_by_strides(f, layout, *inputs, **options):
    """Each input in turn as a view: the answer is that of the same values laid out plainly."""
    for i, x in enumerate(inputs):
        view, plain = laid_out(x, layout)
        answers = [f(*inputs[:i], v, *inputs[i + 1 :], **options) for v in (view, plain)]
        size = float(exact64(answers[1]).abs().max())
        within = 4 * torch.finfo(x.dtype if x.is_floating_point() else inputs[0].dtype).eps * 4 * size
        close(answers[0], answers[1], within, f"input {i} {layout}, against plain")


def all_gradients(f, *inputs, **options):
    """The gradients of every input, laid end to end, along one fixed direction of the output."""
    leaves = [x.detach().clone().requires_grad_() for x in inputs]
    out = f(*leaves, **options)
    along = torch.linspace(-1, 1, out.numel(), dtype=torch.float64).reshape(out.shape)
    along = along.to(out.dtype).to(out.device)
    return torch.cat([grad.flatten() for grad in gradients(out, *leaves, along=along)])


# --- attention -------------------------------------------------------------------------------------------


def attention_inputs(draw, n_q=4, n_k=4):
    """Six query heads on two key/value heads; as many queries as keys, so that no mask's corner matters."""
    return draw(2, 6, n_q, 8), draw(2, 2, n_k, 8), draw(2, 2, n_k, 8)


@claim("contract.attention-writes-nothing", needs="attention", source="interface")
@WRITABLE
@pytest.mark.parametrize("causal", [False, True], ids=["open", "causal"])
def test_attention_leaves_its_inputs_alone(impl, draw, causal, layout):
    """Attention writes to none of its inputs."""
    writes_nothing(impl.attention, layout, *attention_inputs(draw), causal=causal, scale=0.3)


@claim("contract.attention-remembers-nothing", needs="attention", source="interface")
def test_attention_repeats_itself(impl, draw):
    """Attention answers a call alike before and after other calls, and reads its inputs anew each time."""
    one, short, long = attention_inputs(draw), attention_inputs(draw, 1, 4), attention_inputs(draw, 5, 5)
    calls = (
        (one, {"causal": True, "scale": 0.3}),
        (one, {"causal": False, "scale": 0.3}),
        (short, {"causal": False, "scale": 0.3}),
        (long, {"causal": True, "scale": 0.3}),
        (one, {"causal": True, "scale": 0.6}),
        (attention_inputs(draw), {"causal": True, "scale": 0.3}),
    )
    remembers_nothing(impl.attention, *calls)


@claim("contract.attention-answers-in-kind", needs="attention", source="interface", dtypes=EVERY_DTYPE)
def test_attention_keeps_dtype_and_device(impl, draw):
    """Attention answers in its queries' dtype and on their device."""
    answers_in_kind(impl.attention, *attention_inputs(draw), scale=0.3)


@claim("contract.attention-is-finite", needs="attention", source="interface")
@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("causal", [False, True], ids=["open", "causal"])
def test_attention_gives_numbers(impl, draw, causal, size):
    """Attention's answer is finite: for zeros, and where scores reach thousands."""
    q, k, v = attention_inputs(draw)
    is_finite(impl.attention, SIZES[size] * q, SIZES[size] * k, v, causal=causal, scale=0.3)


@claim("contract.attention-keeps-rows-apart", needs="attention", source="interface")
@pytest.mark.parametrize("n_q", [1, 4])
def test_rows_of_attention_do_not_meet(impl, draw, n_q):
    """Attention over a batch is attention over each of its rows."""
    inputs = attention_inputs(draw, n_q)
    keeps_rows_apart(impl.attention, 3, inputs, causal=True, scale=0.3)


@claim("contract.attention-reads-by-strides", needs="attention", source="interface")
@pytest.mark.parametrize("layout", LAYOUTS)
def test_attention_ignores_layout(impl, draw, layout):
    """Attention depends on its inputs' values, not on how they lie in memory."""
    reads_by_strides(impl.attention, layout, *attention_inputs(draw), causal=True, scale=0.3)


@claim("contract.attention-passes-gradients", needs="attention", source="interface", gradients=True)
@pytest.mark.parametrize("causal", [False, True], ids=["open", "causal"])
def test_attention_gradients_reach_every_input(impl, draw, dtype, causal):
    """Attention's gradients reach queries, keys and values, summed over the heads that share a key."""
    inputs, along = attention_inputs(draw), draw(2, 6, 4, 8)
    steps = [draw(*x.shape).sign() for x in inputs]
    leaves = [x.clone().requires_grad_() for x in inputs]
    grads = gradients(impl.attention(*leaves, causal=causal, scale=0.3), *leaves, along=along)

    def rise(i, t):
        """How far the formula rises along `along` when input i goes t of its step, in float64."""
        moved = [exact64(x) + (t * exact64(steps[i]) if i == j else 0) for j, x in enumerate(inputs)]
        return (formula.attention(*moved, causal=causal, scale=0.3) * exact64(along)).sum()

    eps = max(torch.finfo(dtype).eps, torch.finfo(torch.float32).eps)
    for i, grad in enumerate(grads):
        slope = (rise(i, 1e-4) - rise(i, -1e-4)) / 2e-4  # off by about 1e-8
        within = 16 * eps * float(exact64(grad).norm()) + 1e-6
        close(
            (exact64(grad) * exact64(steps[i])).sum(),
            slope,
            within,
            f"the gradient of input {i} along a step",
        )


# --- rope ------------------------------------------------------------------------------------------------


def rope_inputs(draw, device, start=3, n=5):
    """Entries of +1 and -1: each plane is equally long, whichever dimensions pair up."""
    return draw(2, 3, n, 8).sign(), torch.arange(start, start + n, device=device)


def within_longer_run(rope, n, x, positions, *, base):
    """The same rows turned as the first of n: of one length, where calls of another left nothing behind."""
    more = positions[-1] + 1 + torch.arange(n - len(positions), device=positions.device)
    longer = torch.cat((x, x[:, :, :1].expand(-1, -1, len(more), -1)), dim=2)
    return rope(longer, torch.cat((positions, more)), base=base)[:, :, : len(positions)]


@claim("contract.rope-writes-nothing", needs="rope", source="interface")
@WRITABLE
def test_rope_leaves_its_inputs_alone(impl, draw, device, layout):
    """RoPE writes neither to its vectors nor to its positions."""
    writes_nothing(impl.rope, layout, *rope_inputs(draw, device), base=1e4)


@claim("contract.rope-remembers-nothing", needs="rope", source="interface")
def test_rope_repeats_itself(impl, draw, device, dtype):
    """RoPE answers a call alike before and after calls with other bases, positions and lengths.

    A table kept from the first call of its kind repeats itself as well, so each call is also made as part of
    a longer one, of a length that no other call here has.
    """

    def call(base, *positions):
        x = draw(2, 3, len(positions), 8).sign()
        return (x, torch.tensor(positions, device=device)), {"base": base}

    calls = (
        call(1e4, 0, 1, 2, 3, 4),
        call(5e5, 0, 1, 2, 3, 4),
        call(1e4, 40, 41, 42, 43, 44),
        call(1e4, 0, 2, 1, 3, 4),  # the ends of the first, and other insides
        call(1e4, *range(9)),
        call(1e2, *range(9)),
        call(5e5, 3000, 3001),
    )
    eps32 = torch.finfo(torch.float32).eps
    for i, ((x, positions), options) in enumerate(calls):
        alone = impl.rope(x, positions, **options)
        longer = within_longer_run(impl.rope, 20 + i, x, positions, **options)
        within = 4 * max(torch.finfo(dtype).eps, eps32) + 4 * eps32 * float(positions.max())
        close(alone, longer, within, f"call {i}, against the same rows of a longer one")
    remembers_nothing(impl.rope, *calls)


@claim("contract.rope-forgets-16-bit-calls", needs="rope", source="interface", dtypes=("bfloat16", "float16"))
def test_rope_forgets_calls_of_other_dtypes(impl, draw, device, dtype):
    """A long call in 16 bits leaves nothing behind: a float32 call answers as it did before."""
    base = {torch.bfloat16: 2e4, torch.float16: 3e4}[dtype]  # of its own, so that no call came before
    x, at = draw(1, 1, 10, 6).to(torch.float32), torch.arange(2990, 3000, device=device)
    before = impl.rope(x, at, base=base).clone()
    impl.rope(draw(1, 1, 3000, 6), torch.arange(3000, device=device), base=base)
    same(impl.rope(x, at, base=base), before, "a float32 call, after one in 16 bits")


@claim("contract.rope-answers-in-kind", needs="rope", source="interface", dtypes=EVERY_DTYPE)
def test_rope_keeps_dtype_and_device(impl, draw, device):
    """RoPE answers in its vectors' dtype and on their device."""
    answers_in_kind(impl.rope, *rope_inputs(draw, device), base=1e4)


@claim("contract.rope-is-finite", needs="rope", source="interface")
@pytest.mark.parametrize("size", SIZES)
def test_rope_gives_numbers(impl, draw, device, size):
    """RoPE's answer is finite: for zeros, for large vectors, and far out."""
    x, positions = rope_inputs(draw, device)
    is_finite(impl.rope, SIZES[size] * x, positions * 40_000, base=1e4)


@claim("contract.rope-keeps-rows-apart", needs="rope", source="interface")
@pytest.mark.parametrize("n", [1, 5])
def test_rows_of_rope_do_not_meet(impl, draw, device, n):
    """RoPE turns every row of a batch, each by itself, single tokens too."""
    x, positions = rope_inputs(draw, device, n=n)
    keeps_rows_apart(impl.rope, 1, (x, positions), base=1e4)


@claim("contract.rope-reads-by-strides", needs="rope", source="interface")
@pytest.mark.parametrize("layout", LAYOUTS)
def test_rope_ignores_layout(impl, draw, device, layout):
    """RoPE depends on its vectors' values, not on how they lie in memory."""
    x, positions = rope_inputs(draw, device)

    def turn(x, **options):
        return impl.rope(x, positions, **options)

    reads_by_strides(turn, layout, x, base=1e4)
    view = torch.stack((positions, positions + 9), dim=-1).flatten()[::2]
    same(impl.rope(x, view, base=1e4), impl.rope(x, positions, base=1e4), "every second position of a buffer")


@claim("contract.rope-passes-gradients", needs="rope", source="interface", gradients=True)
def test_rope_gradients_turn_back(impl, draw, device, dtype):
    """RoPE's gradient is the answer's own, turned back by the same angles."""
    x, positions = rope_inputs(draw, device)
    x, along = x.requires_grad_(), draw(2, 3, 5, 8)
    (grad,) = gradients(impl.rope(x, positions, base=1e4), x, along=along)
    with torch.no_grad():
        again = impl.rope(grad.detach(), positions, base=1e4)
    eps = max(torch.finfo(dtype).eps, torch.finfo(torch.float32).eps)
    close(again, along, 6 * eps * float(exact64(along).abs().max()), "the gradient, turned forwards again")


# --- rms_norm --------------------------------------------------------------------------------------------


def norm_inputs(draw):
    return draw(2, 5, 12), draw.gains(12)


@claim("contract.norm-writes-nothing", needs="rms_norm", source="interface")
@WRITABLE
def test_norm_leaves_its_inputs_alone(impl, draw, layout):
    """RMSNorm writes neither to its input nor to its gain."""
    writes_nothing(impl.rms_norm, layout, *norm_inputs(draw), eps=1e-5)


@claim("contract.norm-remembers-nothing", needs="rms_norm", source="interface")
def test_norm_repeats_itself(impl, draw):
    """RMSNorm answers a call alike before and after other calls, and reads its inputs anew each time."""
    x, weight = norm_inputs(draw)
    calls = (
        ((x, weight), {"eps": 1e-5}),
        ((x, weight), {"eps": 0.5}),
        ((x, 2 * weight), {"eps": 1e-5}),
        ((x[..., :10].contiguous(), weight[:10].clone()), {"eps": 1e-5}),
        ((3 * x + 1, weight), {"eps": 1e-5}),
    )
    remembers_nothing(impl.rms_norm, *calls)


@claim("contract.norm-answers-in-kind", needs="rms_norm", source="interface", dtypes=EVERY_DTYPE)
def test_norm_keeps_dtype_and_device(impl, draw):
    """RMSNorm answers in its input's dtype and on its device."""
    answers_in_kind(impl.rms_norm, *norm_inputs(draw), eps=1e-5)


@claim("contract.norm-is-finite", needs="rms_norm", source="interface")
@pytest.mark.parametrize("size", SIZES)
def test_norm_gives_numbers(impl, draw, size):
    """RMSNorm's answer is finite, for zeros too."""
    x, weight = norm_inputs(draw)
    is_finite(impl.rms_norm, SIZES[size] * x, weight, eps=1e-5)


@claim("contract.norm-keeps-rows-apart", needs="rms_norm", source="interface")
@pytest.mark.parametrize("n", [1, 5])
def test_rows_of_norm_do_not_meet(impl, draw, n):
    """RMSNorm over a batch is RMSNorm over each of its rows."""
    x, weight = norm_inputs(draw)
    keeps_rows_apart(impl.rms_norm, 1, (x[:, :n].contiguous(), weight), eps=1e-5)


@claim("contract.norm-reads-by-strides", needs="rms_norm", source="interface")
@pytest.mark.parametrize("layout", LAYOUTS)
def test_norm_ignores_layout(impl, draw, layout):
    """RMSNorm depends on values, not on how input and gain lie in memory."""
    reads_by_strides(impl.rms_norm, layout, *norm_inputs(draw), eps=1e-5)


@claim("contract.norm-passes-gradients", needs="rms_norm", source="interface", gradients=True)
def test_norm_gradients_reach_every_input(impl, draw):
    """RMSNorm's gradients reach its input and its gain."""
    agrees(
        impl.rms_norm, formula.rms_norm, *norm_inputs(draw), quantity=all_gradients, eps=1e-5,
        what="the gradients of x and weight",
    )  # fmt: skip


# --- feed_forward ----------------------------------------------------------------------------------------


def ffn_inputs(draw):
    """Matrices that keep an input's size."""
    return draw(2, 5, 12), draw(12, 20) / 4, draw(12, 20) / 4, draw(20, 12) / 4


@claim("contract.ffn-writes-nothing", needs="feed_forward", source="interface")
@WRITABLE
def test_ffn_leaves_its_inputs_alone(impl, draw, layout):
    """The feed-forward network writes neither to its input nor to its matrices."""
    writes_nothing(impl.feed_forward, layout, *ffn_inputs(draw))


@claim("contract.ffn-remembers-nothing", needs="feed_forward", source="interface")
def test_ffn_repeats_itself(impl, draw):
    """The feed-forward network answers alike before and after other calls, and reads its inputs anew."""
    x, gate, up, down = ffn_inputs(draw)
    calls = (
        ((x, gate, up, down), {}),
        ((x, up, gate, down), {}),
        ((x, gate, up, -down), {}),
        ((x[:, :2].contiguous(), gate, up, down), {}),
    )
    remembers_nothing(impl.feed_forward, *calls)


@claim("contract.ffn-answers-in-kind", needs="feed_forward", source="interface", dtypes=EVERY_DTYPE)
def test_ffn_keeps_dtype_and_device(impl, draw):
    """The feed-forward network answers in its input's dtype and on its device."""
    answers_in_kind(impl.feed_forward, *ffn_inputs(draw))


@claim("contract.ffn-is-finite", needs="feed_forward", source="interface")
@pytest.mark.parametrize("size", SIZES)
def test_ffn_gives_numbers(impl, draw, size):
    """The feed-forward network's answer is finite, for zeros and for large inputs."""
    x, *matrices = ffn_inputs(draw)
    is_finite(impl.feed_forward, SIZES[size] * x, *matrices)


@claim("contract.ffn-keeps-rows-apart", needs="feed_forward", source="interface")
@pytest.mark.parametrize("n", [1, 5])
def test_rows_of_ffn_do_not_meet(impl, draw, n):
    """The feed-forward network over a batch is itself over each of its rows."""
    x, *matrices = ffn_inputs(draw)
    keeps_rows_apart(impl.feed_forward, 1, (x[:, :n].contiguous(), *matrices))


@claim("contract.ffn-reads-by-strides", needs="feed_forward", source="interface")
@pytest.mark.parametrize("layout", LAYOUTS)
def test_ffn_ignores_layout(impl, draw, layout):
    """The feed-forward network depends on values, not on how input and matrices lie in memory."""
    reads_by_strides(impl.feed_forward, layout, *ffn_inputs(draw))


@claim("contract.ffn-passes-gradients", needs="feed_forward", source="interface", gradients=True)
def test_ffn_gradients_reach_every_input(impl, draw):
    """The feed-forward network's gradients reach its input and all three matrices."""
    agrees(
        impl.feed_forward, formula.feed_forward, *ffn_inputs(draw), quantity=all_gradients,
        what="the gradients of x and the matrices",
    )  # fmt: skip


# --- a whole model ---------------------------------------------------------------------------------------


def forward(model, tokens, cache=None):
    with torch.no_grad():
        return model(tokens) if cache is None else model(tokens, cache)


@claim("contract.model-writes-nothing", needs="Transformer", source="interface")
def test_model_leaves_tokens_and_weights_alone(build, draw):
    """A forward pass, with a cache or without, writes neither to the tokens nor to the weights."""
    model, tokens = build(SMALL), draw.tokens(SMALL.n_vocab, 2, 7)
    weights = measure.parameters(model)
    before, given = {name: p.detach().clone() for name, p in weights.items()}, tokens.clone()
    cache = model.new_cache()
    forward(model, tokens)
    forward(model, tokens, cache)
    forward(model, tokens[:, :1], cache)
    same(tokens, given, "the tokens after the passes")
    for name, old in before.items():
        same(weights[name].detach(), old, f"{name} after the passes")


@claim("contract.model-remembers-nothing", needs="Transformer", source="interface")
def test_model_repeats_itself(build, draw):
    """A model answers alike before and after other lengths and other texts, with and without a cache."""
    model, tokens = build(SMALL), draw.tokens(SMALL.n_vocab, 2, 7)
    first = forward(model, tokens)
    kept = first.clone()
    forward(model, draw.tokens(SMALL.n_vocab, 2, 7))
    forward(model, draw.tokens(SMALL.n_vocab, 1, 11))
    cache = model.new_cache()
    forward(model, draw.tokens(SMALL.n_vocab, 2, 4), cache)
    forward(model, draw.tokens(SMALL.n_vocab, 2, 1), cache)
    same(first, kept, "the first answer, after other texts")
    same(forward(model, tokens), kept, "logits, after other texts")


@claim("contract.model-keeps-caches-apart", needs="Transformer", source="interface")
def test_two_caches_do_not_meet(build, draw, dtype):
    """Two texts decoded in turn, each with its own cache, are decoded as each one alone."""
    weights = draw.weights(SMALL)
    model, texts = build(SMALL, weights), draw.tokens(SMALL.n_vocab, 2, 1, 6)
    caches, steps = [model.new_cache(), model.new_cache()], ([], [])
    for i in range(6):
        for text, cache, found in zip(texts, caches, steps, strict=True):
            found.append(forward(model, text[:, i : i + 1], cache))
    for text, found in zip(texts, steps, strict=True):
        within = 2 * probe.logits_bound(SMALL, weights, text, dtype)
        close(torch.cat(found, dim=1), forward(model, text), within, "logits in turns, against one pass")


@claim("contract.model-answers-in-kind", needs="Transformer", source="interface", dtypes=EVERY_DTYPE)
def test_model_keeps_dtype_and_device(build, draw, device, dtype):
    """A model's logits have the dtype and the device that it was made with, and are finite."""
    logits = forward(build(SMALL), draw.tokens(SMALL.n_vocab, 2, 7))
    same((str(logits.dtype), logits.device.type), (str(dtype), device), "the logits' dtype and device")
    same(bool(logits.isfinite().all()), True, "finite everywhere")


@claim("contract.model-keeps-rows-apart", needs="Transformer", source="interface")
@pytest.mark.parametrize("n", [1, 7])
def test_rows_of_a_model_do_not_meet(build, draw, dtype, n):
    """Two texts in a batch get the logits that each gets alone."""
    weights = draw.weights(SMALL)
    model, tokens = build(SMALL, weights), draw.tokens(SMALL.n_vocab, 2, n)
    together = forward(model, tokens)
    within = 2 * probe.logits_bound(SMALL, weights, tokens, dtype)
    close(torch.cat([forward(model, row) for row in tokens.split(1)]), together, within, "texts one by one")
    changed = torch.cat((tokens[:1], (tokens[1:] + 1) % SMALL.n_vocab))
    same(forward(model, changed)[:1], together[:1], "the first text, where the second is another")


@claim("contract.model-passes-gradients", needs="Transformer", source="interface", gradients=True)
def test_model_gradients_reach_every_parameter(build, draw, device):
    """A loss on the logits has a gradient for every matrix, gain and table."""
    model, tokens = build(SMALL), draw.tokens(SMALL.n_vocab, 2, 7)
    weights = measure.parameters(model)
    logits = model(tokens)
    along = torch.linspace(-1, 1, logits.numel()).reshape(logits.shape).to(logits.dtype).to(device)
    for name, grad in zip(weights, gradients(logits, *weights.values(), along=along), strict=True):
        at_least(exact64(grad).abs().max(), 1e-30, f"the largest gradient in {name}")
