"""Training: what the way back costs, what it keeps in memory, and why one pass can grade every position.

A training step runs the model forward, grades all its guesses at once, walks the error back to every
weight, and lets an optimizer apply the corrections. Each part is measured here: multiplies with a FLOP
counter, the optimizer's state on a real optimizer, kept activations with autograd's own hooks.
"""

import math

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
    configs,
    gradients,
    measure,
    noise,
    probe,
    same,
    sizes,
)  # fmt: skip
from harness.checks import exact64
from refimpl import LLAMA_3_8B, cost
from refimpl.attention import attention
from refimpl.hardware import H100
from refimpl.norm import widen

N = cost.n_parameters(LLAMA_3_8B)  # 8,030,261,248
GB = 1e9


def graded(logits, tokens, reduction="mean"):
    """Cross-entropy of each position's guess against the token that comes next."""
    return F.cross_entropy(widen(logits[:, :-1]).mT, tokens[:, 1:], reduction=reduction)


def there_and_back(model, n=1):
    """FLOPs by operator of a forward pass over n tokens on meta, and of its backward pass to all weights."""
    tokens, held = torch.zeros(1, n, dtype=torch.int64, device="meta"), []
    forward = measure.flops_by_kind(lambda: held.append(model(tokens)))
    weights = measure.parameters(model).values()
    return forward, measure.flops_by_kind(lambda: gradients(held[0], *weights))


def reference_on_meta(config):
    return refimpl.Transformer(config, device="meta", dtype=torch.bfloat16)


# --- what the whole model costs: the way back ----------------------------------------------------------


@claim(
    "training.backward-is-two-forwards",
    needs="Transformer",
    on="meta",
    gradients=True,
    through=("attention", "feed_forward"),
    source="refresher, short version, §6, §13",
)
def test_backward_costs_two_forwards(impl, device):
    """Where all weights learn and nothing is recomputed, backward costs two forward passes."""
    forward, backward = there_and_back(impl.Transformer(SMALL, device=device, dtype=torch.float32), 5)
    # A fused attention kernel multiplies queries and keys once more on its way back: 2.5 of its forwards.
    fused, plain = ([sum(n for kind, n in counts.items() if ("attention" in kind) == is_fused)
                     for counts in (forward, backward)] for is_fused in (True, False))  # fmt: skip
    same(plain[1], 2 * plain[0], "FLOPs of the backward pass")
    between(fused[1], 2.0 * fused[0], 2.5 * fused[0], "FLOPs of a fused attention's backward pass")


def conditions_table():
    """What forward and backward cost, in forwards, for two layers of a plain network."""

    def cost_of(*, learns, input_learns=False, run=None):
        x = torch.zeros(6, 8, device="meta", requires_grad=input_learns)
        w = [torch.zeros(8, 8, device="meta", requires_grad=on) for on in learns]

        def net(x):
            return (x @ w[0]).relu() @ w[1]

        total = measure.flops(lambda: (run or (lambda f, x: f(x)))(net, x).sum().backward())
        return total / measure.flops(lambda: net(x))

    def twice(f, x):
        from torch.utils.checkpoint import checkpoint, set_checkpoint_early_stop

        with set_checkpoint_early_stop(False):
            return checkpoint(f, x, use_reentrant=False)

    return Table(
        "Training in forward passes",
        ("case", "document", "measured"),
        (
            (
                "every input and weight needs its gradient",
                "3x",
                cost_of(learns=(True, True), input_learns=True),
            ),
            ("nothing before the first of two layers learns", "3x", cost_of(learns=(True, True))),
            (
                "the weights of both layers are frozen",
                "3x",
                cost_of(learns=(False, False), input_learns=True),
            ),
            ("the first layer is frozen, and nothing before it learns", "3x", cost_of(learns=(False, True))),
            (
                "all activations are recomputed",
                "3x",
                cost_of(learns=(True, True), input_learns=True, run=twice),
            ),
        ),
    )


@claim(
    "training.factor-three-has-conditions",
    needs=None,
    source="refresher, short version, §6, §13",
    erratum="the document says that training costs 3x the arithmetic of a forward pass; measured between "
    "1.5x and 4x where inputs or weights need no gradient, or activations are recomputed",
)
def test_factor_three_has_conditions(receipt):
    """Frozen weights, a first layer without a learning input and recomputation all move the factor 3."""
    table = conditions_table()
    receipt(table)
    same([row[-1] for row in table.rows], [3.0, 2.5, 2.0, 1.5, 4.0], "forward and backward in forwards")


def linear_table():
    """The three multiplies of one linear layer's training, each counted alone."""
    n, d_in, d_out = 8, 16, 24
    x = torch.zeros(n, d_in, device="meta")
    w = torch.zeros(d_in, d_out, device="meta")

    def both_ways(x_learns, w_learns):
        a, b = x.clone().requires_grad_(x_learns), w.clone().requires_grad_(w_learns)
        return measure.flops(lambda: (a @ b).sum().backward())

    forward = measure.flops(lambda: x @ w)
    price = 2 * n * d_in * d_out
    return Table(
        f"A linear layer's training: n = {n}, d_in = {d_in}, d_out = {d_out}",
        ("pass", "operation", "document", "2 n d_in d_out", "measured"),
        (
            ("forward", "X W", "2 n d_in d_out", price, forward),
            ("backward", "X^T dY", "2 n d_in d_out", price, both_ways(False, True) - forward),
            ("backward", "dY W^T", "2 n d_in d_out", price, both_ways(True, False) - forward),
            ("both", "all three", "3x", 3 * price, both_ways(True, True)),
        ),
    )


@claim("training.linear-layer-makes-three-products", needs=None, source="refresher §6, §13")
def test_linear_layer_makes_three_products(draw, receipt):
    """Y = X W sends back dW = X^T dY and dX = dY W^T, three multiplies of one price."""
    table = linear_table()
    receipt(table)
    x, w, dy = (exact64(draw(*shape)) for shape in ((8, 16), (16, 24), (8, 24)))
    x.requires_grad_()
    w.requires_grad_()
    dx, dw = gradients(x @ w, x, w, along=dy)
    eps = torch.finfo(torch.float64).eps
    close(dw, x.mT @ dy, 8 * 8 * eps * 16, "dW against X^T dY")  # sums of 8 products below 16
    close(dx, dy @ w.mT, 8 * 24 * eps * 16, "dX against dY W^T")
    for row in table.rows:
        same(row[4], row[3], f"FLOPs of {row[1]}")


@claim(
    "training.weight-correction-is-input-times-message",
    needs="feed_forward",
    gradients=True,
    source="refresher §6, §13",
)
@pytest.mark.parametrize("n", [1, 7])
def test_weight_correction_is_input_times_message(impl, draw, device, dtype, n):
    """A layer corrects a weight by its own input times the message about its output: dW = X^T dY."""
    x, dy = draw(2, n, 12), draw(2, n, 12)
    w_gate, w_up, w_down = draw(12, 20), draw(12, 20), draw(20, 12) / 4
    w_down.requires_grad_()
    (dw,) = gradients(impl.feed_forward(x, w_gate, w_up, w_down), w_down, along=dy)
    # With an identity for W_down, in two pieces, the network hands out what W_down reads.
    eye = torch.eye(20, 24, device=device).to(dtype)
    pieces = [impl.feed_forward(x, w_gate, w_up, part) for part in eye.split(12, dim=1)]
    middle = exact64(torch.cat(pieces, dim=-1))[..., :20].flatten(0, 1)  # (2 n, d_ff)
    dy = exact64(dy).flatten(0, 1)
    # Both sides round the middle and the sum over positions; each product errs by a few eps of its size.
    size = middle.abs().mT @ dy.abs()
    close(dw, middle.mT @ dy, 8 * math.sqrt(2 * n) * torch.finfo(dtype).eps * size + 1e-30, "dW_down")


@claim(
    "training.message-comes-from-behind",
    needs="Transformer",
    gradients=True,
    source="refresher §6",
)
def test_message_comes_from_the_layer_behind(build, draw):
    """A layer hears of its error only through the layers behind it: a dead head silences all but itself."""
    weights = draw.weights(SMALL)
    head = weights["lm_head.weight"]
    tokens = draw.tokens(SMALL.n_vocab, 2, 6)
    model = build(SMALL, weights | {"lm_head.weight": torch.zeros_like(head)})
    found = measure.parameters(model)
    loss = graded(model(tokens), tokens)
    parts = dict(zip(found, gradients(loss, *found.values()), strict=True))
    heard = sorted(name for name, grad in parts.items() if bool(grad.ne(0).any()))
    same(len(heard), 1, "the number of weights that get a correction")
    same(parts[heard[0]].numel(), head.numel(), "the size of the weight that gets one: the head's")


def six_n_table(make):
    """FLOPs a token for Llama-3-8B, at one token so that scores cost next to nothing."""
    forward, backward = measure.at_depth(
        lambda c: tuple(sum(kinds.values()) for kinds in there_and_back(make(c))), LLAMA_3_8B
    )
    return Table(
        "FLOPs per token, Llama-3-8B",
        ("pass", "document", "times N", "measured"),
        (
            ("inference", "2N = 16.1 G", 2 * N, forward),
            ("training", "6N = 48.2 G", 6 * N, forward + backward),
        ),
        "N counts the embedding table, whose rows are looked up and multiply nothing.",
    )


@claim(
    "training.six-per-matmul-weight",
    needs="Transformer",
    on="meta",
    gradients=True,
    source="refresher §6",
    erratum="the document says 2N = 16.1 and 6N = 48.2 GFLOP a token with N = 8.03B; measured 15.01 and "
    "45.03, since the embedding table in N is a lookup",
)
def test_training_costs_six_flops_per_matmul_weight(impl, receipt):
    """A token costs 2 FLOPs a weight that multiplies it, and 6 in training; table rows are free."""
    table = six_n_table(lambda c: impl.Transformer(c, device="meta", dtype=torch.bfloat16))
    receipt(table)
    exact = cost.forward_flops(LLAMA_3_8B, 1)
    (inference, training) = (row[-1] for row in table.rows)
    same(inference, exact, "FLOPs of one token's forward pass")
    same(training, 3 * exact, "FLOPs of one token's training")
    at_least(6 * N / training, 1.065, "6N over what was counted")


# --- what training keeps: corrections, copies, averages ------------------------------------------------


@claim(
    "training.optimizer-keeps-two-per-weight",
    needs="Transformer",
    gradients=True,
    source="refresher §6",
)
def test_optimizer_keeps_two_numbers_per_weight(build, draw, dtype):
    """Backward stores one correction a weight and changes nothing; AdamW keeps two averages beside it."""
    tokens = draw.tokens(SMALL.n_vocab, 2, 6)
    model = build(SMALL)
    weights = measure.parameters(model)
    before = {name: w.detach().clone() for name, w in weights.items()}
    grads = gradients(graded(model(tokens), tokens), *weights.values())
    for (name, w), grad in zip(weights.items(), grads, strict=True):
        same(w.detach(), before[name], f"{name} after the backward pass")
        same((grad.shape, grad.dtype), (w.shape, w.dtype), f"the form of the correction of {name}")
        w.grad = grad
    optimizer = torch.optim.AdamW(weights.values(), lr=0.1, weight_decay=0.0)
    optimizer.step()
    kept = sum(t.nbytes for state in optimizer.state.values() for t in state.values() if t.ndim)
    same(kept, 2 * sum(w.nbytes for w in weights.values()), "bytes of AdamW's averages")
    still = [name for name, w in weights.items() if torch.equal(w.detach(), before[name])]
    same(still, [], "weights that the step left where they were")


def held_bytes(weights, master):
    """Bytes a weight that one AdamW step leaves behind: weights, gradients, master copy, both averages."""
    w = torch.zeros(48, 64, dtype=weights, requires_grad=True)
    w.grad = torch.ones_like(w)
    target = w
    if master:
        target = w.detach().to(master).requires_grad_()
        target.grad = w.grad.to(master)  # a passing copy, freed after the step
    optimizer = torch.optim.AdamW([target])
    optimizer.step()
    state = optimizer.state[target]
    parts = [w, w.grad, target if master else w.new_empty(0), state["exp_avg"], state["exp_avg_sq"]]
    return [t.nbytes // w.numel() for t in parts]


def state_table():
    """What one AdamW step on bf16 weights with a float32 master copy holds, for N weights."""
    document = (("16.1 GB", "16.1 GB"), ("16.1 GB", "32.1 GB"), ("32.1 GB", "64.2 GB"),
                ("32.1 GB", "96.4 GB"), ("32.1 GB", "128.5 GB"))  # fmt: skip
    what = ("bf16 weights", "bf16 gradients", "fp32 master copy", "Adam moment m", "Adam moment v")
    rows, total = [], 0
    for name, (size, running), held in zip(
        what, document, held_bytes(torch.bfloat16, torch.float32), strict=True
    ):
        total += held
        rows.append((name, held, size, f"{held * N / GB:.2f} GB", running, f"{total * N / GB:.2f} GB"))
    columns = ("what", "bytes a weight", "document", "measured", "document total", "measured total")
    return Table("Training state of Llama-3-8B", columns, tuple(rows))


def recipes_table():
    """Other AdamW set-ups: what they hold a weight."""
    recipes = (
        ("bf16, float32 master copy", torch.bfloat16, torch.float32),
        ("float32 throughout", torch.float32, None),
        ("bf16 throughout, no master copy", torch.bfloat16, None),
    )
    rows = tuple((name, "~16", sum(held_bytes(*recipe))) for name, *recipe in recipes)
    return Table("Bytes a weight in training, by recipe", ("recipe", "document", "measured"), rows)


def over_budget_table():
    """The state against the card's 77 usable GB."""
    state = sum(held_bytes(torch.bfloat16, torch.float32)) * N / GB
    return Table(
        "Training state against one 80 GB card",
        ("what", "document", "measured"),
        (
            ("training state (16 B/param)", "128 GB", f"{state:.2f} GB"),
            ("over 77 GB usable by", "51 GB", f"{state - 77:.2f} GB"),
            ("training over serving in bf16", "8x", f"{state / (2 * N / GB):.1f}x"),
        ),
    )


@claim(
    "training.sixteen-bytes-a-weight",
    needs=None,
    source="refresher, short version, §6",
    erratum="the document says that training takes about 16 bytes a parameter; measured 16 for bf16 with a "
    "float32 master copy and for float32, but 8 for AdamW on bf16 weights alone",
)
def test_training_state_takes_sixteen_bytes_a_weight(receipt):
    """AdamW on bf16 weights with a float32 master copy holds 16 bytes a weight, 8 times the weights."""
    state, recipes, budget = state_table(), recipes_table(), over_budget_table()
    receipt(state, recipes, budget)
    same([row[1] for row in state.rows], [2, 2, 4, 4, 4], "bytes a weight")
    same([row[-1] for row in recipes.rows], [16, 16, 8], "bytes a weight by recipe")
    between(16 * N / GB, 128.0, 128.5, "GB of training state")
    between(16 * N / GB - 77, 51.0, 51.5, "GB over the usable 77")
    same(16 // 2, 8, "training over serving")


@claim("training.small-updates-need-float32", needs=None, per="device", source="refresher §6")
@pytest.mark.parametrize("steps, update", [(100, 1e-3), (1000, 1e-4)])
def test_small_updates_need_float32(device, steps, update):
    """In bf16's seven fraction bits small updates to a weight vanish; a float32 master copy sums them."""
    weight = torch.ones((), device=device, dtype=torch.bfloat16)
    master = torch.ones((), device=device)
    for _ in range(steps):
        weight += update  # below half of 2^-7, the distance of 1 to its neighbour
        master += update
    same(float(weight), 1.0, "the bf16 weight after all updates")
    close(master, 1 + steps * update, steps * torch.finfo(torch.float32).eps, "the float32 master copy")
    same(float(master.to(torch.bfloat16)) > 1.0, True, "the master copy moved, as bf16 sees it")


@claim(
    "training.updating-at-once-frees-only-gradients",
    needs=None,
    source="refresher §6",
    erratum="the document says that gradients, master copy and Adam's averages would not exist if backward "
    "changed the weights as it went; measured: only the gradients go, 14 of 16 bytes a weight stay",
)
def test_updating_at_once_frees_only_the_gradients(draw):
    """Stepping each weight as its gradient arrives frees gradients; averages live from step to step."""
    layers = [draw(8, 8).requires_grad_() for _ in range(3)]
    optimizers = {w: torch.optim.AdamW([w]) for w in layers}

    def step_now(w):
        optimizers[w].step()
        w.grad = None

    for w in layers:
        w.register_post_accumulate_grad_hook(step_now)
    before = [w.detach().clone() for w in layers]
    x = draw(4, 8)
    for w in layers:
        x = x @ w
    x.sum().backward()
    same([w.grad for w in layers], [None] * 3, "gradients held after the backward pass")
    same([torch.equal(w, b) for w, b in zip(layers, before, strict=True)], [False] * 3, "weights unmoved")
    kept = sum(t.nbytes for o in optimizers.values() for s in o.state.values() for t in s.values() if t.ndim)
    same(kept, 2 * sum(w.nbytes for w in layers), "bytes of the averages still held")
    between((16 - 2) * N / GB, 112.4, 112.5, "GB of state without the gradients")


@claim(
    "training.sharding-needs-all-of-the-state",
    needs=None,
    source="refresher §6",
    erratum="the document says that sharding the optimizer state over 8 cards makes 128 GB into 16 GB each; "
    "that alone leaves 44 GB on each, 16 GB needs gradients and weights sharded too",
)
@pytest.mark.parametrize(
    "sharded, low, high",
    [(("optimizer",), 44.1, 44.2), (("optimizer", "gradients"), 30.1, 30.2),
     (("optimizer", "gradients", "weights"), 16.0, 16.1)],
    ids=["optimizer", "and-gradients", "and-weights"],
)  # fmt: skip
def test_sharding_needs_all_of_the_state(sharded, low, high):
    """Eight cards hold 16 GB each of an 8B model's training once all of its state is sharded."""
    state = {"weights": 2, "gradients": 2, "optimizer": 4 + 4 + 4}  # bytes a weight
    per_card = sum(size / 8 if name in sharded else size for name, size in state.items()) * N / GB
    between(per_card, low, high, "GB on each of 8 cards")
    same(per_card < 17, len(sharded) == 3, "whether that is the document's 16 GB")
    same(math.ceil(16 * N / GB / 77), 2, "cards that hold the whole state, activations aside")


@claim("training.compute-is-6nd", needs=None, source="refresher §6")
@pytest.mark.parametrize(
    "value, low, high",
    [(6 * 8.03e9 * 15e12, 7.15e23, 7.25e23), (1.3e6 / (24 * 365), 148, 149),
     (6 * 8.03e9 * 15e12 / (1.3e6 * 3600 * 990e12), 0.15, 0.16)],
    ids=["flops", "gpu-years", "of-peak"],
)  # fmt: skip
def test_compute_is_six_n_d(value, low, high):
    """15T tokens through 8.03B weights are 7.2e23 FLOPs; 1.3M card-hours are 148 years, at 16% of peak."""
    between(value, low, high, "6ND, card-years, or the share of an H100's 990 TFLOP/s")


# --- what training keeps: activations and logits --------------------------------------------------------


def kept(call, weights):
    """The saved tensors of a call, the weights aside."""
    own = {w.untyped_storage().data_ptr() for w in weights}
    return [t for t in measure.saved(call) if t.untyped_storage().data_ptr() not in own]


@claim("training.weight-gradient-keeps-the-input", needs=None, source="refresher §6, §13")
@pytest.mark.parametrize("learns", [True, False])
def test_linear_layer_keeps_its_input_for_the_weight_gradient(draw, learns):
    """A linear layer keeps its input until the way back if its weight learns, and nothing if it does not."""
    x, w = draw(6, 12).requires_grad_(), draw(12, 20).requires_grad_(learns)
    middle = x * 1  # an activation, as a layer inside a network gets it
    held = kept(lambda: middle @ w, [w])
    same(
        [t.data_ptr() for t in held], [middle.data_ptr()] if learns else [], "kept tensors beside the weight"
    )


@claim(
    "training.frozen-weights-keep-activations",
    needs=None,
    source="refresher §13",
    erratum="the document says that the weight gradient alone pins activations; measured: with all weights "
    "of the blocks frozen, most of the kept bytes stay, for softmax, gates, norms and scores",
)
def test_frozen_blocks_keep_most_activations(draw):
    """Freezing every block weight keeps most activations: softmax, gate, norm and scores need them too."""
    model = refimpl.Transformer(SMALL)
    model.load_state_dict(draw.weights(SMALL))
    tokens = draw.tokens(SMALL.n_vocab, 2, 24)
    names = measure.parameters(model)

    def held():
        return sum(t.nbytes for t in kept(lambda: model(tokens), names.values()))

    learning = held()
    for name, w in names.items():
        w.requires_grad_("layers" not in name)  # the embedding still learns, so a message must get through
    between(held() / learning, 0.5, 0.99, "kept bytes with frozen blocks, over all learning")


def middle_table():
    """The SwiGLU's kept tensors of d_ff columns, Llama-3-8B, bf16; counted at 2,048 tokens, times 2."""
    d, f, n = LLAMA_3_8B.d_model, LLAMA_3_8B.d_ff, 2048
    x = torch.zeros(1, n, d, device="meta", dtype=torch.bfloat16, requires_grad=True)
    shapes = ((d, f), (d, f), (f, d))
    w = [torch.zeros(s, device="meta", dtype=torch.bfloat16, requires_grad=True) for s in shapes]
    held = [t for t in measure.saved(lambda: refimpl.feed_forward(x, *w)) if t.numel() == n * f]
    size = 2 * sum(t.nbytes for t in held)
    return Table(
        "The feed-forward's middle at 4,096 tokens, bf16",
        ("what", "document", "measured"),
        (
            ("tensors of d_ff columns a block", "1", f"{len(held)}"),
            ("one of them", "117 MB", f"{2 * held[0].nbytes / 1e6:.1f} MB"),
            ("all of a block", "117 MB", f"{size / 1e6:.1f} MB"),
            ("all of 32 blocks", "3.8 GB", f"{32 * size / GB:.2f} GB"),
        ),
    )


@claim(
    "training.swiglu-keeps-four-middles",
    needs=None,
    source="refresher §6",
    erratum="the document counts one middle tensor a block, 117 MB and 3.8 GB over 32; measured: autograd "
    "keeps four (gate, its SiLU, up, and their product), 470 MB and 15.0 GB",
)
def test_swiglu_keeps_four_middles(receipt):
    """A SwiGLU written out keeps four tensors of d_ff columns a block, not one."""
    table = middle_table()
    receipt(table)
    same([row[-1] for row in table.rows], ["4", "117.4 MB", "469.8 MB", "15.03 GB"], "kept middles")


def block(model, x):
    """The reference's first block."""
    layer = model.model["layers"][0]
    positions = torch.arange(x.shape[1], device=x.device)
    x = x + model.attend(layer, model.norm(layer["input_layernorm"], x), positions, None, 0)
    return x + model.feed(layer["mlp"], model.norm(layer["post_attention_layernorm"], x))


def checkpointed(model, x, *, early_stop=True):
    """The block with only its input kept; what lies between is computed again on the way back."""
    from torch.utils.checkpoint import checkpoint, set_checkpoint_early_stop

    with set_checkpoint_early_stop(early_stop):
        return checkpoint(block, model, x, use_reentrant=False, preserve_rng_state=False)


def stream(n):
    """n rows of the residual stream on meta, with a gradient to come."""
    return torch.zeros(1, n, LLAMA_3_8B.d_model, device="meta", dtype=torch.bfloat16, requires_grad=True)


def checkpoint_table():
    """What 32 checkpointed blocks of Llama-3-8B keep at 4,096 tokens, and one block without."""
    model, x = reference_on_meta(LLAMA_3_8B.but(n_layers=1)), stream(4096)
    inputs = measure.saved(lambda: checkpointed(model, x))
    scores = [t for t in measure.saved(lambda: block(model, x)) if t.numel() == 32 * 4096 * 4096]
    return Table(
        "Activations with checkpointing, b=1 s=4096",
        ("what", "document", "measured"),
        (
            ("tensors kept a block", "1", f"{len(inputs)}"),
            ("bytes of 32 blocks' inputs", "1.1 GB", f"{32 * sum(t.nbytes for t in inputs) / GB:.3f} GB"),
            (
                "softmax weights of the block computed again",
                "-",
                f"{max(t.nbytes for t in scores) / GB:.3f} GB",
            ),
        ),
        "A block computed again needs its own activations at the peak; the document leaves them out.",
    )


@claim(
    "training.checkpoint-keeps-one-tensor-a-block",
    needs=None,
    source="refresher §6",
    erratum="the document predicts 1.1 GB of activations under checkpointing; measured: the kept inputs are, "
    "but the block being recomputed adds its own, with written-out scores 2.1 GB of them",
)
def test_checkpoint_keeps_one_tensor_a_block(receipt):
    """Checkpointing keeps one (n, d_model) input a block, and at the peak one block's activations."""
    table = checkpoint_table()
    receipt(table)
    same([row[-1] for row in table.rows], ["1", "1.074 GB", "2.147 GB"], "what checkpointing keeps")


def recompute_table():
    """Extra FLOPs of checkpointing at 1,024 tokens: 32 blocks, and the model with its head."""
    model, x = reference_on_meta(LLAMA_3_8B.but(n_layers=1)), stream(1024)
    head = 3 * 2 * 1024 * LLAMA_3_8B.d_model * LLAMA_3_8B.n_vocab
    plain = 32 * measure.flops(lambda: block(model, x).sum().backward())
    rows = []
    for what, early in (("all of each block", False), ("up to what is needed (PyTorch's default)", True)):
        again = 32 * measure.flops(
            lambda early=early: checkpointed(model, x, early_stop=early).sum().backward()
        )
        blocks, whole = again / plain - 1, (again - plain) / (plain + head)
        rows.append((what, "~30%", f"{100 * blocks:.1f}%", f"{100 * whole:.1f}%"))
    return Table(
        "Extra compute of checkpointing", ("computed again", "document", "blocks", "with head"), tuple(rows)
    )


@claim("training.checkpoint-adds-a-third", needs=None, source="refresher §6")
def test_checkpointing_adds_a_third(receipt):
    """Computing every block twice adds a third to the blocks' training, and a quarter if stopped early."""
    table = recompute_table()
    receipt(table)
    same([row[2:] for row in table.rows], [("33.3%", "31.1%"), ("24.7%", "23.0%")], "extra FLOPs")


def logits_table(make):
    """The logits of one training sequence beside what else is kept."""
    config, n = LLAMA_3_8B.but(n_layers=1), 4096
    logits = make(config)(torch.zeros(1, n, dtype=torch.int64, device="meta"))
    size = logits.numel() * 4
    small = torch.zeros(6, 20, requires_grad=True)
    copies = sum(
        t.nbytes == small.nbytes for t in measure.saved(lambda: F.cross_entropy(small, torch.arange(6)))
    )
    inputs = LLAMA_3_8B.n_layers * n * LLAMA_3_8B.d_model * 2
    one_block = 2 * (cost.attention_parameters(config) + cost.ffn_parameters(config))
    return Table(
        "Logits of one sequence, fp32 at seq 4096",
        ("what", "document", "measured"),
        (
            ("one token", "513 KB", f"{size / n / 1e3:.3f} KB"),
            ("one sequence", "2.1 GB", f"{size / GB:.3f} GB"),
            (
                "with the loss's saved copy and the gradient",
                "4-6 GB",
                f"{(1 + copies + 1) * size / GB:.2f} GB",
            ),
            ("over one block's weights in bf16", "several", f"{size / one_block:.1f}"),
            ("over all checkpointed block inputs", "2.1 / 1.1", f"{size / inputs:.3f}"),
        ),
    )


@claim(
    "training.logits-outweigh-checkpoints",
    needs="Transformer",
    on="meta",
    source="refresher §6, §13",
    erratum="the document says that the logits are bigger than every other stored activation together; that "
    "holds with checkpointing (2.10 to 1.07 GB), while one middle tensor of each block is 3.76 GB",
)
def test_logits_of_a_sequence_outweigh_its_checkpoints(impl, receipt):
    """Training scores every position at once, 2.1 GB of logits at 4,096 tokens, twice the checkpoints."""
    table = logits_table(lambda c: impl.Transformer(c, device="meta", dtype=torch.bfloat16))
    receipt(table)
    same([row[-1] for row in table.rows], ["513.024 KB", "2.101 GB", "6.30 GB", "4.8", "1.957"], "logits")
    at_least(32 * 4096 * 14336 * 2 / (4096 * 128256 * 4), 1.7, "one middle tensor a block, over the logits")


# --- how this becomes learning: every position graded in one pass ----------------------------------------


@claim(
    "training.one-pass-is-n-passes",
    needs="Transformer",
    through=("attention", "rope", "rms_norm", "feed_forward"),
    source="refresher §1, §13; whiteboard, Which mask makes it a chat model",
)
def test_one_pass_grades_what_n_passes_grade(build, draw, dtype):
    """One pass scores the whole vocabulary at each position as a pass over its prefix alone would."""
    weights, tokens = draw.weights(SMALL), draw.tokens(SMALL.n_vocab, 2, 9)
    model = build(SMALL, weights)
    with torch.no_grad():
        at_once = model(tokens)
        one_by_one = torch.stack([model(tokens[:, : i + 1])[:, -1] for i in range(9)], dim=1)
    same(tuple(at_once.shape), (2, 9, SMALL.n_vocab), "the shape of one pass's logits")
    close(at_once, one_by_one, 2 * probe.logits_bound(SMALL, weights, tokens, dtype), "logits in one pass")


@claim(
    "training.guesses-do-not-interact",
    needs="Transformer",
    source="refresher §13",
)
def test_guesses_do_not_feed_into_each_other(build, draw, dtype):
    """Guesses depend on the text alone: renaming what is guessed renames the scores and moves nothing."""
    weights, tokens = draw.weights(SMALL), draw.tokens(SMALL.n_vocab, 2, 7)
    order = draw.shuffle(SMALL.n_vocab)
    renamed = weights | {"lm_head.weight": weights["lm_head.weight"][order]}
    with torch.no_grad():
        logits, others = build(SMALL, weights)(tokens), build(SMALL, renamed)(tokens)
    # Every guess is another word now. Had position 2 read position 1's guess, its scores would move.
    within = 2 * probe.logits_bound(SMALL, weights, tokens, dtype)
    close(others, logits[..., order], within, "scores under other names")


@claim(
    "training.labels-are-one-fewer",
    needs=None,
    source="refresher §13; whiteboard, Which mask makes it a chat model",
    erratum="the document says that 5 tokens give 5 graded predictions and 4,000 tokens 4,000 labels; "
    "counted: one fewer, since the last position's answer is not in the text",
)
@pytest.mark.parametrize("n", [5, 1000, 4000])
def test_text_holds_one_label_fewer_than_tokens(n):
    """A text of n tokens grades n - 1 of its n predictions; the last needs a token that is not there."""
    tokens = torch.arange(n)
    labels = tokens[1:]  # the answer of position i is token i + 1
    same(len(labels), n - 1, "labels in the text")
    logits = torch.zeros(n, 7)
    terms = F.cross_entropy(logits[:-1], labels % 7, reduction="none")
    same(len(terms), n - 1, "graded predictions")
    with pytest.raises(ValueError, match="batch_size"):
        F.cross_entropy(logits, labels % 7)  # n predictions have no n labels
    same(len(torch.cat((labels, torch.tensor([0])))), n, "labels with an end marker")


@pytest.mark.slow
@claim("training.mask-stops-copying", needs=None, source="refresher §13")
@pytest.mark.parametrize("run", [0, 1, 2])
@pytest.mark.parametrize("masked", [True, False], ids=["masked", "open"])
def test_mask_stops_copying(draw, masked, run):
    """On random tokens a causal model learns nothing; without the mask it copies the answer it can see."""
    # 120 steps of Adam on fresh uniform tokens, graded on 256 rows of 17. Three runs measured 2.776 to 2.781
    # with the mask (chance is ln 16 = 2.773) and 0.009 to 0.013 without; the bands lie 0.03 and 0.2 away.
    # The masked loss on 4,096 fresh labels cannot fall below chance but by sampling, with a standard
    # deviation below 0.01: 2.65 is 12 of them away.
    config = SMALL.but(n_vocab=16, d_model=32, n_heads=2, n_kv_heads=2, d_head=16, d_ff=64)
    model = refimpl.Transformer(config, attention=attention if masked else unmasked)
    model.load_state_dict(draw.weights(config))
    learn(model, (draw.tokens(16, 32, 17) for _ in range(120)), lambda logits, tokens: graded(logits, tokens))
    tokens = draw.tokens(16, 256, 18)
    with torch.no_grad():
        losses = graded(model(tokens[:, :-1]), tokens[:, :-1], "none").mean(0)
    visible = float(losses.mean())  # the labels that are in the input
    if masked:
        at_least(visible, math.log(16) - 0.12, "the loss with a mask, in nats")
    else:
        at_most(visible, 0.3, "the loss without a mask, in nats")
        with torch.no_grad():
            last = F.cross_entropy(model(tokens[:, :-1])[:, -1], tokens[:, -1])
        at_least(last, math.log(16) - 0.12, "the loss where the label is not in the input")


def unmasked(q, k, v, *, causal=False, scale=None):
    return attention(q, k, v, scale=scale)


def learn(model, batches, loss, lr=3e-3):
    """Adam over the batches."""
    optimizer = torch.optim.Adam(model.parameters(), lr=lr)
    for tokens in batches:
        optimizer.zero_grad()
        loss(model(tokens), tokens).backward()
        optimizer.step()


def as_vector(grads):
    return torch.cat([exact64(g).flatten() for g in grads])


def reference_gradients(weights, tokens, dtype):
    """The loss's gradients as one vector, by the reference on the CPU in a dtype."""
    return as_vector(gradients_by_name(weights, tokens, dtype).values())


def gradients_by_name(weights, tokens, dtype):
    """The loss's gradients by weight, by the reference on the CPU in a dtype."""
    model, tokens = probe.reference(SMALL, weights, dtype), tokens.cpu()
    own = measure.parameters(model)
    return dict(zip(own, gradients(graded(model(tokens), tokens), *own.values()), strict=True))


def gradient_bound(weights, tokens, dtype):
    """The exact gradients' length, and how far a correct gradient may stray from them."""
    exact = reference_gradients(weights, tokens, torch.float64)
    plain = reference_gradients(weights, tokens, torch.float32 if dtype == torch.float64 else dtype)
    own, eps = (plain - exact).norm(), torch.finfo(dtype).eps
    if dtype == torch.float64:
        own = own * eps / torch.finfo(torch.float32).eps
    return exact.norm(), float(4 * own + eps * math.sqrt(SMALL.d_model) * exact.norm())


@claim(
    "training.single-loss",
    needs="Transformer",
    gradients=True,
    source="refresher §13",
)
def test_one_backward_sweep_serves_all_positions(build, draw, dtype):
    """One sweep back from the averaged loss gives the average of what each position alone would."""
    weights, tokens = draw.weights(SMALL), draw.tokens(SMALL.n_vocab, 1, 5)
    model = build(SMALL, weights)
    own = list(measure.parameters(model).values())
    losses = graded(model(tokens), tokens, "none").flatten()  # (4,)
    at_once = as_vector(sweep(losses.mean(), own))
    alone = [as_vector(sweep(loss, own)) for loss in losses]
    # Each position's gradient rounds like the whole one, at its own size.
    length, within = gradient_bound(weights, tokens, dtype)
    within *= 1 + sum(float(g.norm()) for g in alone) / len(alone) / float(length)
    at_most((at_once - sum(alone) / len(alone)).norm(), within, "the average's distance to the one sweep")


def sweep(loss, weights):
    """Gradients of a loss, zero where it does not depend, with its graph kept for the next one."""
    same(loss.requires_grad, True, "whether the loss carries a gradient")
    found = torch.autograd.grad(loss, weights, retain_graph=True, allow_unused=True)
    return [torch.zeros_like(w) if g is None else g for g, w in zip(found, weights, strict=True)]


@claim("training.picking-has-no-gradient", needs=None, source="refresher §13")
def test_picking_the_top_score_has_no_gradient(draw):
    """A nudge leaves the top score's index where it was, and moves the probability of the true token."""
    logits, nudge = exact64(draw(200, 40)).requires_grad_(), exact64(draw(200, 40)) * 1e-9
    true = torch.arange(200) % 40
    # Two of 200 top scores lie within 1e-9 of their second with odds below 1e-6.
    same(logits.argmax(-1), (logits + nudge).argmax(-1), "the picked tokens after a nudge")
    same(logits.argmax(-1).requires_grad, False, "whether picking carries a gradient")
    with torch.no_grad():
        moved = F.cross_entropy(logits + nudge, true, reduction="none") - F.cross_entropy(
            logits, true, reduction="none"
        )
    same(int(moved.ne(0).sum()), 200, "losses that the nudge moved")
    (slope,) = gradients(F.cross_entropy(logits, true, reduction="sum"), logits)
    close((slope * nudge).sum(-1), moved, 1e-14, "the loss's change against its gradient")


@claim(
    "training.gradients-add-where-a-tensor-is-read-twice",
    needs="feed_forward",
    gradients=True,
    source="refresher §13",
    erratum="the document says that a layer's dX is literally the dY of the layer before; measured: where "
    "one tensor feeds several layers its gradient is the sum of their dX, and none of them alone",
)
def test_gradients_add_at_fan_outs(impl, draw, dtype):
    """An input read by two layers gets the sum of both messages: dX = dG W_gate^T + dU W_up^T."""
    x, dy = draw(2, 5, 12).requires_grad_(), draw(2, 5, 12)
    w_gate, w_up, w_down = (
        w.requires_grad_() for w in (draw(12, 20) / 3, draw(12, 20) / 3, draw(20, 12) / 4)
    )
    dx, dw_gate, dw_up = gradients(impl.feed_forward(x, w_gate, w_up, w_down), x, w_gate, w_up, along=dy)
    # The two branches' messages, from their values in float64.
    X, dY, W_gate, W_up, W_down = (exact64(t) for t in (x, dy, w_gate, w_up, w_down))
    gate, up, d_middle = X @ W_gate, X @ W_up, dY @ W_down.mT
    share = gate.sigmoid()
    d_gate = d_middle * up * share * (1 + gate * (1 - share))
    d_up = d_middle * gate * share
    through_gate, through_up = d_gate @ W_gate.mT, d_up @ W_up.mT
    # Rounding of the middle tensors, then sums over 20 slots: a few eps of the largest terms.
    eps = torch.finfo(dtype).eps
    size = d_gate.abs() @ W_gate.mT.abs() + d_up.abs() @ W_up.mT.abs()
    within = 8 * eps * float(size.max())
    close(dx, through_gate + through_up, within, "dX against the sum of both messages")
    for name, alone in (("the gate", through_gate), ("up", through_up)):
        apart = (exact64(dx) - alone).abs().max()
        at_least(apart, within, f"the distance of dX to the message through {name} alone")
    size = X.abs().flatten(0, 1).mT @ d_gate.abs().flatten(0, 1) + X.abs().flatten(
        0, 1
    ).mT @ d_up.abs().flatten(0, 1)
    within = 8 * eps * float(size.max())
    close(dw_gate, X.flatten(0, 1).mT @ d_gate.flatten(0, 1), within, "dW_gate against X^T dG")
    close(dw_up, X.flatten(0, 1).mT @ d_up.flatten(0, 1), within, "dW_up against X^T dU")


@claim(
    "training.every-weight-gets-its-gradient",
    needs="Transformer",
    gradients=True,
    dtypes=("float32",),
    through=("attention", "rms_norm", "feed_forward"),
    source="refresher §6, §8, §13",
)
def test_every_weight_gets_its_gradient(build, draw):
    """The error reaches every weight, the three maps to q, k and v each: as much as a nudge moves it.

    Each weight is nudged by 0.1% of its size, to and fro, along the reference's gradient: along its own one
    a gradient of which a part is missing would be right. Over that the loss bends and rounds by under 0.1% of
    its slope in the reference, and by 0.6% where gains are larger by 1; a nudge needs float32.
    """
    weights, tokens = draw.weights(SMALL), draw.tokens(SMALL.n_vocab, 2, 6)
    model = build(SMALL, weights)
    own = measure.parameters(model)
    grads = gradients(graded(model(tokens), tokens), *own.values())
    silent = [name for name, g in zip(own, grads, strict=True) if not bool(g.ne(0).any())]
    same(silent, [], "weights with a gradient of zero")

    def loss(w, nudged):
        as_it_was = w.detach().clone()
        with torch.no_grad():
            w.copy_(nudged)
            found = float(graded(exact64(model(tokens)), tokens.cpu()))
            w.copy_(as_it_was)
        return found

    reference = gradients_by_name(weights, tokens, torch.float64)
    for (name, w), grad in zip(own.items(), grads, strict=True):
        known = name in reference and reference[name].shape == grad.shape
        way = exact64(reference[name] if known else grad)  # a weight of another name goes along its own
        way = way / way.norm() * (float(w.detach().norm()) or 1.0)  # a bias may be 0 as a whole
        step = (0.001 * way).to(w.dtype).to(w.device)
        slope = (loss(w, w + step) - loss(w, w - step)) / 0.002
        said = float((exact64(grad) * way).sum())
        within = 0.05 * float(exact64(grad).norm() * way.norm())
        close(said, slope, within, f"what the gradient says of a nudge to {name}")


# --- so what actually runs in parallel? ------------------------------------------------------------------


def parallel_table(make, draw):
    """Across each axis: what was changed or split, and how far the rest moved, with its noise."""
    weights, tokens = draw.weights(SMALL), draw.tokens(SMALL.n_vocab, 2, 6)
    other = tokens.clone()
    other[:, -1] = (other[:, -1] + 1) % SMALL.n_vocab
    with torch.no_grad():
        logits = make(weights)(tokens)
        moved = {
            "heads": change_another_head(make, weights, tokens, draw),
            "forward": gap(logits[:, :4], make(weights)(tokens[:, :4])),
            "blocks": gap(make(swap_blocks(weights))(tokens), logits),
            "tokens": gap(make(weights)(other)[:, -1], logits[:, -1]),
        }
    model = make(weights)
    own = list(measure.parameters(model).values())
    losses = graded(model(tokens), tokens, "none").mean(0)
    sweeps = [as_vector(sweep(loss, own)) for loss in losses]
    moved["backward"] = gap(as_vector(sweep(losses.mean(), own)), sum(sweeps) / len(sweeps))
    moved["passes"] = float(len(measure.saved(lambda: make(weights)(tokens))) > 0)
    return moved


def parallel_receipt(moved):
    def shown(key):
        return noise(moved[key], 1e-4) if moved[key] < 1e-4 else f"{moved[key]:.3f}"

    return Table(
        "What runs in parallel",
        ("across", "document", "what was tried", "the rest moves by"),
        (
            ("heads", "yes", "other queries for one head; the outputs of the others", shown("heads")),
            ("positions, forward", "yes", "a pass over the first positions alone", shown("forward")),
            ("positions, backward", "yes", "a sweep for each position, averaged", shown("backward")),
            ("blocks", "no", "block 2 before block 1", shown("blocks")),
            (
                "forward vs backward",
                "no",
                "tensors kept by forward for backward",
                "kept" if moved["passes"] else "none",
            ),
            ("generated tokens", "no", "another last token; the scores after it", shown("tokens")),
        ),
    )


def gap(a, b):
    return float((exact64(a) - exact64(b)).abs().max())


def swap_blocks(weights):
    turned = {"model.layers.0.": "model.layers.1.", "model.layers.1.": "model.layers.0."}
    return {turned.get(name[:15], name[:15]) + name[15:]: w for name, w in weights.items()}


def change_another_head(make, weights, tokens, draw):
    """Let W_o read the first head alone, give the last head other queries, and see what moves."""
    one, two = dict(weights), dict(weights)
    for name, w in weights.items():
        if "o_proj" in name:
            one[name] = two[name] = torch.where(
                torch.arange(w.shape[1], device=w.device) < SMALL.d_head, w, 0 * w
            )
        if "q_proj" in name:
            last = torch.arange(len(w), device=w.device) >= len(w) - SMALL.d_head
            two[name] = torch.where(last[:, None], draw(*w.shape), w)
    return gap(make(one)(tokens), make(two)(tokens))


@claim(
    "training.what-runs-in-parallel",
    needs="Transformer",
    gradients=True,
    source="refresher §13",
)
def test_what_runs_in_parallel(build, draw, dtype, receipt):
    """Heads and positions wait for nothing; blocks, the way back and generated tokens wait."""
    moved = parallel_table(lambda weights: build(SMALL, weights), draw)
    receipt(parallel_receipt(moved))
    # The model is the claim's own draw again: it starts each case.
    draw.restart(draw.seed)
    weights, tokens = draw.weights(SMALL), draw.tokens(SMALL.n_vocab, 2, 6)
    within = 2 * probe.logits_bound(SMALL, weights, tokens, dtype)
    _, gradients_within = gradient_bound(weights, tokens, dtype)
    same(moved["heads"], 0.0, "the move of the scores when a head they do not read changes")
    at_most(moved["forward"], within, "the move of early scores when later positions are left out")
    at_most(moved["backward"], 4 * gradients_within, "the distance of the averaged sweeps to the one")
    at_least(moved["blocks"], min(2 * within, 0.2), "the move of the scores when two blocks change places")
    same(moved["passes"], 1.0, "whether forward keeps values for backward")
    at_least(moved["tokens"], min(2 * within, 0.2), "the move of the next scores when the last token changes")


@pytest.mark.slow
@claim("training.copying-a-pattern-takes-two-layers", needs=None, source="refresher §4")
@pytest.mark.parametrize("run", [0, 1, 2])
@pytest.mark.parametrize("n_layers", [1, 2])
def test_copying_a_pattern_takes_two_layers(draw, n_layers, run):
    """Two layers of attention learn to continue a repeat of any period; one layer does not."""
    # Random blocks of 6 to 19 tokens, repeated: where the repeat has begun, an induction head finds the
    # token's last occurrence and copies what followed. With one fixed period a single layer could learn
    # the distance by heart, so the period is drawn for each row.
    config = SMALL.but(n_vocab=16, d_model=64, n_layers=n_layers, n_heads=4, n_kv_heads=4, d_head=16, d_ff=4)
    model = refimpl.Transformer(config, feed_forward=lambda x, *w: torch.zeros_like(x))
    model.load_state_dict(draw.weights(config))

    def repeats(n):
        period = 6 + draw.tokens(14, n)
        index = torch.arange(40) % period[:, None]
        return draw.tokens(16, n, 20).gather(1, index), period

    learn(model, (repeats(32)[0] for _ in range(400)), graded)
    tokens, period = repeats(256)
    with torch.no_grad():
        losses = graded(model(tokens), tokens, "none")
    second = torch.arange(1, 40) > period[:, None]
    loss = float(losses[second].mean())
    if n_layers == 2:
        at_most(loss, 1.0, "two layers' loss in the repeat, in nats")
    else:
        at_least(loss, 1.5, "one layer's loss in the repeat, in nats")


# --- any model ------------------------------------------------------------------------------------------

# Models on which the tables of any model are locked: windows and tied tables, then latents and experts.
ANY = ("gemma-2-9b", "deepseek-v3")
STATE = {
    "bf16 weights": 2,
    "bf16 gradients": 2,
    "fp32 master copy": 4,
    "Adam moment m": 4,
    "Adam moment v": 4,
}


def middle(s, sparse):
    """Columns of one layer's feed-forward that one token meets."""
    e = s.experts
    return e.top_k * e.d_ff + e.d_ff_shared if e and sparse else s.d_ff


def bill_table(s, card):
    """What training a model holds: state for every weight, and one sequence's activations."""
    everything, tables, n = sizes.n_parameters(s), sizes.parameters(s), min(4096, s.n_positions or 4096)
    rows = [
        (what, f"{each} B x {everything:,}", f"{each * everything / GB:.2f} GB")
        for what, each in STATE.items()
    ]
    state = sum(STATE.values()) * everything
    rows.append(("state", f"16 B x {everything:,}", f"{state / GB:.2f} GB"))
    rows.append(
        (
            f"cards of {card.name} for the state",
            "3 GB of each held back",
            f"{-(-state // (card.memory - 3e9)):.0f}",
        )
    )
    if s.experts:
        share = f"{100 * tables['experts'] / everything:.1f}%"
        rows.append(("of it for experts", "all of them, whoever is chosen", share))
    kept = 4 if s.ffn_matrices == 3 else 2
    middles = sum(k * middle(s, sparse) for sparse, k in s.kinds.items())
    rows += [
        ("inputs of all blocks", f"{n:,} tokens, bf16", f"{2 * n * s.d_model * s.n_layers / GB:.2f} GB"),
        ("feed-forward middles", f"{kept} a block, bf16", f"{2 * kept * n * middles / GB:.2f} GB"),
        ("logits", "fp32", f"{4 * n * s.n_vocab / GB:.2f} GB"),
        ("FLOPs a token", "3 passes, causal", f"{3 * sizes.prefill_flops(s, n) / n / 1e9:.1f} G"),
        ("6N (document)", "all N parameters", f"{6 * everything / 1e9:.1f} G"),
    ]  # fmt: skip
    return Table(f"Training {s.name}", ("what", "how", "takes"), tuple(rows), "; ".join(s.notes))


@claim("training.model-state", needs=None, source="refresher, short version, §6")
def test_training_any_model_holds_state_for_weights_no_token_meets(model, card, receipt):
    """Training holds 16 bytes for each weight, met or not, and computes with those that a token meets."""
    everything, met = sizes.n_parameters(model), sizes.n_parameters(model, active=True)
    same(sum(STATE.values()) / STATE["bf16 weights"], 8.0, "state over the weights")
    same(met == everything, model.experts is None, "a token meets all weights, unless there are experts")
    flops = 3 * sizes.prefill_flops(model, 1)
    # A token alone scores itself, next to nothing; tied tables and biases are the rest.
    at_least(flops, 6 * sizes.matmul_parameters(model), "FLOPs of a token there and back")
    at_most(sizes.matmul_parameters(model), met, "weights that multiply a token, of those it meets")
    receipt(bill_table(model, card))


# --- receipts --------------------------------------------------------------------------------------------


@pytest.mark.receipts("training")
def test_receipts(receipt, made, draw):
    def built(weights):
        model = refimpl.Transformer(SMALL)
        model.load_state_dict(weights)
        return model

    receipt(
        conditions_table(),
        linear_table(),
        made("FLOPs per token, Llama-3-8B", lambda: six_n_table(reference_on_meta)),
        state_table(),
        recipes_table(),
        over_budget_table(),
        middle_table(),
        made("Activations with checkpointing, b=1 s=4096", checkpoint_table),
        made("Extra compute of checkpointing", recompute_table),
        made("Logits of one sequence, fp32 at seq 4096", lambda: logits_table(reference_on_meta)),
        parallel_receipt(parallel_table(built, draw.of("training.what-runs-in-parallel"))),
        *(bill_table(configs.read(name), H100) for name in ANY),
    )
