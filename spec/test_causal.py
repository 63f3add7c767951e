"""The causal mask: a token reads what came before it, itself included, and nothing of what comes after.

With n_q queries over n_k keys the queries are the newest tokens: query i sees key j iff j <= i + n_k - n_q.
"""

import pytest
import torch

from harness import SMALL, Table, agrees, at_least, between, claim, close, formula, gradients, probe, same
from harness.checks import exact64


def sees(n_q, n_k):
    """Which query may see which key (n_q, n_k)."""
    return torch.arange(n_k)[None] <= torch.arange(n_q)[:, None] + n_k - n_q


def ends_at_its_key(w):
    """Each row (batch, n_heads, n_q, n_k) has weight up to its own key, and exactly 0 behind it."""
    __tracebackhide__ = True
    wrong = torch.where(sees(*w.shape[-2:]), ~(w > 0), ~(w == 0)).nonzero()
    same(wrong[:3].tolist(), [], "(batch, head, query, key) where the mask is wrong, the first three")


def rows_that_move(attention, q, k, v, key, **options):
    """Rows of the output that move when one key and its value are replaced by far larger ones.

    A weight that is no more than small shows: it is multiplied by a thousand.
    """
    k_new, v_new = k.clone(), v.clone()
    k_new[:, :, key] = -2 * k[:, :, key]
    v_new[:, :, key] = 1000.0 * v[:, :, key].sign()
    options |= {"scale": 0.3}
    return probe.moved(attention(q, k, v, **options), attention(q, k_new, v_new, **options), dim=2)


# --- the mask ----------------------------------------------------------------------------------------


def mask_table(attention, draw):
    """The additive mask of six tokens, read back as log W(causal) - log W(open), up to a constant a row."""
    q, k = draw(1, 1, 6, 16), draw(1, 1, 6, 16)
    w = exact64(probe.weights(attention, q, k, causal=True, scale=0.25))
    found = w[0, 0].log() - exact64(probe.weights(attention, q, k, scale=0.25))[0, 0].log()
    found = found - found.max(-1, keepdim=True).values
    printed = (
        "1.000 0 0 0 0 0",
        "0.180 0.820 0 0 0 0",
        "0.366 0.477 0.157 0 0 0",
        "0.717 0.176 0.072 0.035 0 0",
        "0.238 0.015 0.342 0.345 0.060 0.000",
        "0.126 0.348 0.240 0.160 0.040 0.086",
    )
    rows = []
    for i in range(6):
        mask = " ".join("-inf" if x == -torch.inf else "0" if abs(x) < 0.1 else f"{x:.3f}" for x in found[i])
        numbers = " ".join("0" if x == 0 else f"{x:.3f}" for x in w[0, 0, i].tolist())
        rows.append((f"q{i}", " ".join(["0"] * (i + 1) + ["-inf"] * (5 - i)), mask, printed[i], numbers))
    columns = ("query", "mask (document)", "mask", "weights (document)", "weights")
    note = "The document's weights belong to its own draw."
    return Table("The causal mask of six tokens and the weights it leaves", columns, tuple(rows), note), w


@claim(
    "causal.mask-matrix",
    needs="attention",
    source="refresher §3, eq. 2, §12; whiteboard, Which mask makes it a chat model",
)
def test_mask_hides_the_upper_triangle(impl, draw, receipt):
    """Token i has weight on tokens up to and with itself, and a weight of exactly 0 on all later ones."""
    table, w = mask_table(impl.attention, draw)
    receipt(table)
    ends_at_its_key(w)
    for name, printed, measured, *_ in table.rows:
        same(measured, printed, f"the mask of {name}")


@claim(
    "causal.aligned-at-the-end",
    needs="attention",
    source="refresher §3, §10; whiteboard, Which mask makes it a chat model",
    erratum="the document's code takes the upper triangle of (n_q, n_k) from the top left; with a cache, a "
    "single new token would then see the first key and nothing else",
)
@pytest.mark.parametrize("n_q, n_k", [(1, 6), (3, 7), (2, 37), (5, 130)])
def test_last_query_sees_every_key(impl, draw, n_q, n_k):
    """With fewer queries than keys the mask ends at the last key: the newest token sees all of them."""
    q, k = draw(1, 2, n_q, 16), draw(1, 1, n_k, 16)
    w = exact64(probe.weights(impl.attention, q, k, causal=True, scale=0.1))
    ends_at_its_key(w)
    # The document's triangle for these sizes hides all keys but the first from the first query.
    top_left = torch.ones(n_q, n_k, dtype=torch.bool).triu(1)
    at_least(w[..., top_left].max(), 0.01, "the largest weight where the document's code hides")


@claim(
    "causal.newest-sees-every-key",
    needs="attention",
    source="refresher §2, §3; whiteboard, Which mask makes it a chat model",
)
@pytest.mark.parametrize("n_k", [2, 31, 65, 129, 257, 513, 1025, 4203])
def test_newest_token_sees_every_key_at_any_length(impl, draw, dtype, n_k):
    """However long the past, the two newest tokens see all of it: no key has fallen out of a window.

    The first column of v marks the first key, the second the newest, the third all others. Most lengths are
    one past a power of two, where a kernel's last tile holds a single key. The newest is also asked alone.
    """
    q, k = draw(1, 2, 2, 8), draw(1, 1, n_k, 8)
    kind = torch.full((n_k,), 2)
    kind[0], kind[-1] = 0, 1
    v = probe.marked(kind, like=k)
    terms = n_k if torch.finfo(dtype).bits > 16 else 16  # a sum in 16 bits is not kept in 16 bits
    for n_q in (2, 1):
        agrees(
            impl.attention, formula.attention, q[:, :, -n_q:].contiguous(), k, v, causal=True, scale=0.2,
            terms=terms, what=f"what each kind of key brings, n_q={n_q}",
        )  # fmt: skip


@claim(
    "causal.zero-however-low-the-scores",
    needs="attention",
    source="refresher §3, §12; whiteboard, Which mask makes it a chat model",
)
@pytest.mark.parametrize("n_q, n_k", [(6, 6), (3, 7)])
def test_hidden_keys_weigh_zero_beside_very_low_scores(impl, draw, dtype, n_q, n_k):
    """Hidden keys weigh exactly 0 even where all visible scores are very low: the mask is minus infinity.

    A large negative number in its place would win against scores below it. Visible scores are -320,000, and
    in float16, which holds no such number, -20,000.
    """
    size = 50.0 if dtype == torch.float16 else 200.0
    q, k = size + 0 * draw(1, 2, n_q, 8), -size + 0 * draw(1, 1, n_k, 8)
    w = exact64(probe.weights(impl.attention, q, k, causal=True, scale=1.0))
    visible = sees(n_q, n_k).double()
    same(float((w * (1 - visible)).abs().max()), 0.0, "the largest weight of a hidden key")
    even = (visible / visible.sum(-1, keepdim=True)).expand_as(w)
    # exp(score - logsumexp) is right too: it errs by the rounding of scores, which float32 has at the worst.
    eps = torch.finfo(dtype).eps
    within = 4 * eps + min(eps, torch.finfo(torch.float32).eps) * 8 * size**2
    close(w, even, within, "the weights, even over what is visible")


@claim(
    "causal.never-sees-the-next",
    needs="attention",
    source="refresher §1, §3, §12; whiteboard, Which mask makes it a chat model",
)
@pytest.mark.parametrize(
    "n_q, n_k, keys",
    [
        (7, 7, range(7)),
        (40, 40, (1, 15, 16, 17, 31, 32, 33, 39)),
        (4, 11, range(11)),
        (1, 9, range(9)),
        (3, 601, (0, 88, 511, 598, 599, 600)),
        (1, 4203, (0, 1, 4106, 4107, 4202)),
    ],
    ids=lambda x: str(x) if isinstance(x, int) else "",
)
def test_a_key_reaches_no_earlier_query(impl, draw, n_q, n_k, keys):
    """Replacing one key moves the rows of queries from its own position on, and not a bit of earlier ones."""
    q, k, v = draw(1, 4, n_q, 8), draw(1, 2, n_k, 8), draw(1, 2, n_k, 8)
    for j in keys:
        later = [i for i in range(n_q) if j <= i + n_k - n_q]
        found = rows_that_move(impl.attention, q, k, v, j, causal=True)
        same(found, later, f"queries of {n_q} that move with key {j} of {n_k}")


@claim(
    "causal.holds-in-16-bit",
    needs="attention",
    dtypes=("bfloat16", "float16"),
    source="refresher §3, §12; whiteboard, Which mask makes it a chat model",
)
@pytest.mark.parametrize("n_q, n_k, d_k", [(9, 9, 8), (18, 18, 64), (5, 21, 64), (1, 7, 128)])
def test_mask_holds_in_16_bit(impl, draw, n_q, n_k, d_k):
    """The mask is as sharp in 16-bit as in 32: every single row ends at its own key."""
    q, k = draw(1, 4, n_q, d_k), draw(1, 2, n_k, d_k)
    w = exact64(probe.weights(impl.attention, q, k, causal=True, scale=0.3 / d_k**0.5))
    ends_at_its_key(w)


@claim(
    "causal.row-is-attention-over-its-prefix",
    needs="attention",
    source="refresher §3, §12; whiteboard, Which mask makes it a chat model",
)
@pytest.mark.parametrize("n_q, n_k", [(7, 7), (3, 9)])
def test_masked_row_equals_attention_over_the_prefix(impl, draw, dtype, n_q, n_k):
    """A masked row is attention over its prefix alone: masking comes first, and the rest sums to 1 again."""
    q, k, v = draw(2, 6, n_q, 8), draw(2, 2, n_k, 8), draw(2, 2, n_k, 8)
    out = impl.attention(q, k, v, causal=True, scale=0.3)
    within = 4 * n_k * torch.finfo(dtype).eps * float(v.abs().max())
    for i in range(n_q):
        n = i + n_k - n_q + 1
        alone = impl.attention(q[:, :, i : i + 1], k[:, :, :n], v[:, :, :n], causal=False, scale=0.3)
        close(out[:, :, i : i + 1], alone, within, f"row {i} against its prefix of {n}")


@claim(
    "causal.past-keys-learn",
    needs="attention",
    gradients=True,
    source="refresher §3, §13; whiteboard, Which mask makes it a chat model",
)
@pytest.mark.parametrize("n_q, n_k", [(1, 5), (3, 9), (5, 5)])
def test_past_keys_get_gradients(impl, draw, n_q, n_k):
    """Keys and values of the past get the gradient of every later query, however few queries there are."""
    q, k, v = draw(2, 6, n_q, 8), draw(2, 2, n_k, 8), draw(2, 2, n_k, 8)
    along = draw(2, 6, n_q, 8)

    def slopes(attention, q, k, v, along):
        k, v = (x.detach().clone().requires_grad_() for x in (k, v))
        found = gradients(attention(q, k, v, causal=True, scale=0.3), k, v, along=along)
        return torch.cat(found, dim=-1)

    agrees(impl.attention, formula.attention, q, k, v, along, quantity=slopes, what="the gradients of k, v")


@claim(
    "causal.first-token-sees-itself",
    needs="attention",
    source="refresher §2, §12; whiteboard, Which mask makes it a chat model",
)
def test_first_token_gets_its_own_value(impl, draw, dtype):
    """The first token sees itself with a weight of 1, and gets its own value back."""
    q, k, v = 3 * draw(2, 6, 5, 8), draw(2, 2, 5, 8), draw(2, 2, 5, 8)
    out = impl.attention(q, k, v, causal=True, scale=0.3)
    own = v[:, :, 0].repeat_interleave(3, dim=1)
    close(out[:, :, 0], own, 2 * torch.finfo(dtype).eps * float(v.abs().max()), "the first token's output")


@claim(
    "causal.open-sees-everything",
    needs="attention",
    source="refresher §3, §12; whiteboard, Which mask makes it a chat model",
)
@pytest.mark.parametrize("n_q, n_k", [(5, 5), (3, 9)])
def test_without_the_mask_every_token_sees_every_other(impl, draw, n_q, n_k):
    """Without the mask, as in an encoder, every token sees every other, later ones included."""
    q, k, v = draw(1, 4, n_q, 8), draw(1, 2, n_k, 8), draw(1, 2, n_k, 8)
    for j in range(n_k):
        found = rows_that_move(impl.attention, q, k, v, j, causal=False)
        same(found, list(range(n_q)), f"queries that move with key {j}")


@claim(
    "causal.mask-brings-order",
    needs="attention",
    source="refresher §3, §14; whiteboard, Positions",
    erratum="both documents say that attention ignores order, after the mask has been added; under the mask "
    "only the last token, which sees all, is blind to the order of the others",
)
def test_under_the_mask_order_matters(impl, draw, dtype):
    """Under the mask a shuffle of earlier tokens leaves the last token's output and changes the others'."""
    q, k, v = draw(2, 6, 9, 8), draw(2, 2, 9, 8), draw(2, 2, 9, 8)
    order = torch.cat((draw.shuffle(8), torch.tensor([8], device=q.device)))
    out = impl.attention(q, k, v, causal=True, scale=0.3)
    after = impl.attention(q[:, :, order], k[:, :, order], v[:, :, order], causal=True, scale=0.3)
    within = 4 * 9 * torch.finfo(dtype).eps * float(v.abs().max())
    close(after[:, :, 8], out[:, :, 8], within, "the last token's output after the shuffle")
    gap = exact64(after) - exact64(out[:, :, order])
    at_least(gap.abs().max(), 0.1, "how far other outputs are from the same, shuffled")


# --- whole models ------------------------------------------------------------------------------------


def probe_table(model, device):
    """Replace the third of five tokens, and see whose scores move."""
    tokens = torch.tensor([[5, 9, 12, 3, 7]], device=device)
    other = torch.tensor([[5, 9, 41, 3, 7]], device=device)
    with torch.no_grad():
        changes = (exact64(model(tokens)) - exact64(model(other))).abs().amax(-1)[0].tolist()
    printed = ("0.00e+00", "0.00e+00", "2.29e+00", "3.14e-01", "1.76e-01")
    rows = tuple(
        (i + 1, "12 -> 41" if i == 2 else str(int(tokens[0, i])), printed[i], f"{x:.2e}", x != 0)
        for i, x in enumerate(changes)
    )
    columns = ("position", "its input token", "document", "largest change in its scores", "moved")
    return Table("One token changed", columns, rows, "The document's model has weights of its own."), changes


@claim(
    "causal.probe",
    needs="Transformer",
    through=("attention", "rms_norm", "feed_forward"),
    source="refresher §12, §13, Sidebar; whiteboard, Which mask makes it a chat model",
)
def test_changed_token_moves_no_earlier_scores(impl, build, draw, device, receipt):
    """A changed token moves its own scores and all later ones, and not a bit of the earlier ones."""
    weights = draw.weights(SMALL)
    model = build(SMALL, weights)
    table, _ = probe_table(model, device)
    receipt(table)
    same([row[-1] for row in table.rows], [False, False, True, True, True], "which positions moved")
    # Each of nine tokens in turn, the very next one among them.
    tokens = draw.tokens(SMALL.n_vocab, 1, 9).expand(9, 9).contiguous()
    other = (tokens + torch.eye(9, dtype=torch.int64, device=device)) % SMALL.n_vocab
    with torch.no_grad():
        changed = (model(tokens) != model(other)).any(-1)  # (changed token, position)
    same(changed.tolist(), sees(9, 9).mT.tolist(), "which positions move with which token")


@claim(
    "causal.fading-is-no-law",
    needs="Transformer",
    through=("attention",),
    source="refresher §13, Sidebar",
    erratum="the document says that a changed token's effect fades with distance; in a third of sequences "
    "the farther of two later tokens moves more",
)
def test_effect_of_a_changed_token_need_not_fade(impl, build, draw, device):
    """A changed token's effect need not fade: the second token after it often moves more than the first.

    Of 128 sequences it did in 27% to 53%, in each of 60 models. At 27%, fewer than 5% or more than 95% of
    128 have odds below 1e-10.
    """
    model = build(SMALL, draw.weights(SMALL))
    tokens = draw.tokens(SMALL.n_vocab, 128, 5)
    other = tokens.clone()
    other[:, 2] = (tokens[:, 2] + 1) % SMALL.n_vocab
    with torch.no_grad():
        change = (exact64(model(tokens)) - exact64(model(other))).abs().amax(-1)  # (128, 5)
    between((change[:, 4] > change[:, 3]).double().mean(), 0.05, 0.95, "share of sequences where it grows")


@pytest.mark.receipts("causal")
def test_receipts(receipt, draw):
    import refimpl

    model = refimpl.Transformer(SMALL)
    model.load_state_dict(draw.of("causal.probe").weights(SMALL))
    receipt(
        mask_table(refimpl.attention, draw.of("causal.mask-matrix"))[0],
        probe_table(model, "cpu")[0],
    )
