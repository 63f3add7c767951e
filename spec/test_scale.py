"""Scale: what 1/sqrt(d_k) is for, read off the softmax that it protects.

A softmax sees only how far scores lie apart: a lead of 1 makes a blend, a lead of 8 a winner. Scores of
random queries and keys lie further apart the wider the head, so without the scale a wide head picks one
key, and its softmax passes next to no gradient on. Dividing by sqrt(d_k) takes the width out again.
"""

import itertools
import math

import pytest
import torch

from harness import (
    Table,
    agrees,
    at_least,
    at_most,
    between,
    claim,
    close,
    formula,
    gradients,
    probe,
    same,
)
from harness.checks import exact64

N_KEYS = 8


def first(width, values):
    """Vectors (1, 1, n, width) that hold the given values in their first component and nothing else."""
    values = values if isinstance(values, torch.Tensor) else torch.tensor(values)
    return torch.nn.functional.pad(values[:, None], (0, width - 1))[None, None]


def weights_of(attention, scores, device, dtype, *, width=8, scale=1.0, size=1.0):
    """The weights (n,) of one query whose scores are size * scores * scale."""
    values = torch.tensor(scores, dtype=torch.float64).to(dtype).to(device)
    query = first(width, torch.full((1,), size, dtype=dtype, device=device))
    return exact64(probe.weights(attention, query, first(width, values), scale=scale))[0, 0, 0]


def entropy(w):
    """Nats (...) of weights (..., n): 0 for one key alone, ln n for n equal ones."""
    return torch.special.entr(exact64(w).clamp(min=0)).sum(-1)


def random_head(draw, d_k):
    """Independent standard normal queries (1, 16, 32, d_k) and keys (1, 16, 8, d_k): 512 rows of weights."""
    return draw(1, 16, 32, d_k), draw(1, 16, N_KEYS, d_k)


# --- what a softmax sees ---------------------------------------------------------------------------

# lead of the higher score: the document's weights on the lower and on the higher
LEADS = {
    1: ("0.2689414", "0.7310586"),
    2: ("0.1192029", "0.8807971"),
    4: ("0.0179862", "0.9820138"),
    8: ("0.0003354", "0.9996646"),
    16: ("0.0000001", "0.9999999"),
}


def leads_table(attention, device="cpu", dtype=torch.float32):
    """The weights of two keys by the lead of one score over the other."""
    rows = []
    for lead, document in LEADS.items():
        lower, higher = weights_of(attention, [0.0, float(lead)], device, dtype).tolist()
        rows.append((lead, document[0], f"{lower:.7f}", document[1], f"{higher:.7f}"))
    columns = ("lead", "document: lower", "measured", "document: higher", "measured")
    return Table("Two keys: weights by the lead of one score over the other", columns, tuple(rows))


@claim("scale.two-keys", needs="attention", source="refresher §11")
@pytest.mark.parametrize("lead", LEADS)
def test_two_keys_share_by_their_scores_lead(impl, device, dtype, receipt, lead):
    """Of two keys the one that leads by g weighs 1/(1 + e^-g): a blend at 1, a winner past 8."""
    if lead == 16:
        receipt(leads_table(impl.attention, device, dtype))
    eps, tiny = torch.finfo(dtype).eps, torch.finfo(dtype).smallest_normal
    w = weights_of(impl.attention, [0.0, float(lead)], device, dtype)
    exact = torch.tensor([-lead, lead], dtype=torch.float64).sigmoid()
    # An exponential is as good, relatively, as its argument; a 16-bit one may be flushed to zero.
    close(w, exact, 4 * (1 + lead) * eps * exact + tiny, "the weights of the lower and the higher")


@claim(
    "scale.only-differences-matter",
    needs="attention",
    source="refresher, short version, §11, Sidebar",
)
@pytest.mark.parametrize("steps", [(0.0, 4.0), (-2.0, -1.0, 0.0), (3.0, 0.0, 5.0, 5.0)], ids=str)
@pytest.mark.parametrize("sign", [1, -1])
def test_softmax_sees_only_differences_of_scores(impl, device, dtype, sign, steps):
    """Adding one number to all scores changes no weight, so large scores are no danger in themselves.

    This is why the scale is not about overflow: the row's maximum is subtracted before any exponential.
    The shifted scores are whole numbers that the dtype holds, else rounding them would move the weights.
    """
    far = sign * (1000.0 if torch.finfo(dtype).eps < 2**-9 else 200.0)
    w = weights_of(impl.attention, [far + s for s in steps], device, dtype)
    exact = torch.tensor(steps, dtype=torch.float64).softmax(0)
    eps = torch.finfo(dtype).eps
    inside = min(eps, torch.finfo(torch.float32).eps)  # the precision in which the scores are formed
    close(w, exact, 4 * eps + 4 * inside * abs(far), f"the weights of scores near {far:.0f}")


@claim("scale.temperature", needs="attention", source="refresher §11, Appendix")
def test_a_larger_divisor_flattens_the_weights(impl, draw, device, dtype):
    """Dividing scores by a temperature T raises the weights' entropy with T, from 0 to ln n."""
    q, k = draw(2, 6, 5, 16), draw(2, 2, N_KEYS, 16)
    eps = torch.finfo(dtype).eps

    def level(temperature):
        return entropy(probe.weights(impl.attention, q, k, scale=0.25 / temperature))

    levels = torch.stack([level(t).mean() for t in (0.25, 0.5, 1.0, 2.0, 4.0)])
    at_least(levels.diff(), 0.02, "the step in mean entropy from one temperature to the next")
    # Even weights 1/n, each rounded once, move the entropy by no more than eps ln n.
    close(level(1e9), math.log(N_KEYS), 8 * eps, "the entropy at T = 1e9, ln 8")
    # Two random scores may come close, so the cold limit is taken where the lead is known.
    cold = weights_of(impl.attention, [0.0, 1.0, 0.5], device, dtype, scale=1e3)
    close(cold, torch.tensor([0.0, 1.0, 0.0]), eps, "the weights at T = 1e-3")


# --- the scale itself --------------------------------------------------------------------------------


def recovered(attention, d_k, d_v, device, dtype, *, scale=None, expected):
    """The scale that an implementation uses, read from the ratio of two keys' weights.

    One key scores 0 and the other a multiple of the scale chosen to come out near 2. Six query heads read
    two key/value heads, so no width of the model is a head's; all of them must use one scale.
    """
    reach = 2.0 / abs(expected)
    keys = first(d_k, torch.tensor([0.0, reach], dtype=torch.float64).to(dtype).to(device))
    reach = float(exact64(keys)[0, 0, 1, 0])  # as rounded
    query = first(d_k, torch.ones(1, dtype=dtype, device=device)).expand(1, 6, 1, d_k).contiguous()
    keys = keys.expand(1, 2, 2, d_k).contiguous()
    if d_v is None:
        w = probe.weights(attention, query, keys, scale=scale)
    else:
        values = torch.eye(2, d_v, dtype=dtype, device=device).expand(1, 2, 2, d_v).contiguous()
        w = attention(query, keys, values, scale=scale)
    w = exact64(w)[0, :, 0, :2]  # (n_heads, 2)
    return (w[:, 1] / w[:, 0]).log() / reach


@claim(
    "scale.default-is-one-over-root-d-k",
    needs="attention",
    source="refresher §3, §10, §11, Appendix; whiteboard, Attention is a soft lookup",
)
@pytest.mark.parametrize("d_k", [4, 24, 64, 80, 128, 256, 1024])
@pytest.mark.parametrize("d_v", [None, 40, 136], ids=["d_v=d_k", "d_v=40", "d_v=136"])
def test_default_scale_is_one_over_the_root_of_the_head_width(impl, device, dtype, d_k, d_v):
    """Unless told otherwise attention multiplies scores by 1/sqrt(d_k), d_k the width of its queries."""
    expected = d_k**-0.5
    found = recovered(impl.attention, d_k, d_v, device, dtype, expected=expected)
    # The score near 2 and two weights are rounded a few times each.
    close(found / expected, torch.ones(6), 16 * torch.finfo(dtype).eps, "the scale, times sqrt(d_k)")


@claim("scale.argument-multiplies-scores", needs="attention", source="refresher §10, §11")
@pytest.mark.parametrize("scale", [0.3, 1.0, 2.5, -0.7, 0.0])
def test_scale_argument_is_honoured(impl, draw, scale):
    """A scale that is given multiplies the scores: another than the default, a negative one, or zero."""
    q, k, v = draw(2, 6, 5, 12), draw(2, 2, 7, 12), draw(2, 2, 7, 12)
    agrees(impl.attention, formula.attention, q, k, v, scale=scale, what=f"the output at scale {scale}")


# Scores 8, 0, -8 at d_k = 64: the whiteboard's weights without and with the scale.
BEFORE, AFTER = ("0.9997", "0.0003", "0.0000"), ("0.665", "0.245", "0.090")


def eight_zero_minus_eight(attention, device, dtype, scale):
    return weights_of(attention, [1.0, 0.0, -1.0], device, dtype, width=64, scale=scale, size=8.0)


def worked_table(raw, scaled):
    rows = [
        (score, BEFORE[i], f"{raw[i]:.4f}", AFTER[i], f"{scaled[i]:.3f}")
        for i, score in enumerate((8, 0, -8))
    ]
    columns = ("score", "document: raw", "measured", "document: divided by 8", "measured")
    return Table("Three scores at d_k = 64", columns, tuple(rows))


@claim(
    "scale.turns-a-winner-into-a-blend",
    needs="attention",
    source="whiteboard, Attention is a soft lookup",
)
def test_dividing_by_eight_turns_a_winner_into_a_blend(impl, device, dtype, receipt):
    """At d_k = 64 scores of 8, 0, -8 weigh 0.9997, 0.0003, 0.0000 raw and 0.665, 0.245, 0.090 scaled."""
    scores, eps = torch.tensor([8.0, 0.0, -8.0], dtype=torch.float64), torch.finfo(dtype).eps
    raw, scaled = (eight_zero_minus_eight(impl.attention, device, dtype, scale) for scale in (1.0, None))
    receipt(worked_table(raw, scaled))
    close(raw, scores.softmax(0), 4 * eps, "the weights at scale 1")
    close(scaled, (scores / 8).softmax(0), 4 * eps, "the weights at the default scale")
    for weights, printed in ((raw, BEFORE), (scaled, AFTER)):
        last = 0.5 * 10.0 ** -len(printed[0].partition(".")[2])  # half a unit of the last printed digit
        close(weights, [float(p) for p in printed], last + 4 * eps, "the document's printed weights")


# --- why the root: how scores spread -----------------------------------------------------------------


@claim(
    "scale.dot-product-variance",
    needs=None,
    source="refresher §11, Sidebar; whiteboard, Attention is a soft lookup",
    erratum="the Sidebar says that two unit-variance vectors have a dot product of variance d_k; that takes "
    "independent parts of mean 0: with k = q the product is d_k itself, of variance 0, and with parts of "
    "mean 1 the variance is 3 d_k",
)
@pytest.mark.parametrize("d_k", [1, 2, 4, 7])
def test_variance_of_a_dot_product_is_the_width(d_k):
    """Over independent parts of mean 0 and variance 1 a dot product has mean 0 and variance d_k.

    Signs are the simplest such parts, and all pairs of sign vectors can be listed, so the figures are exact.
    """
    signs = torch.tensor(list(itertools.product((-1.0, 1.0), repeat=d_k)), dtype=torch.float64)
    products = signs @ signs.T
    same(products.mean().item(), 0.0, "the mean")
    same(products.square().mean().item(), float(d_k), "the variance")
    # The document's shorter premise, variance 1 alone, fails twice.
    same(products.diagonal().var(correction=0).item(), 0.0, "the variance of q.q")
    same(products.diagonal().mean().item(), float(d_k), "the mean of q.q")
    shifted = (signs + 1) @ (signs + 1).T
    same(shifted.var(correction=0).item(), 3.0 * d_k, "the variance for parts of mean 1")


@claim(
    "scale.gaps-exceed-the-deviation",
    needs=None,
    source="refresher §11",
    erratum="the document reads the deviation of one score, 8 at d_k 64 and 32 at 1024, in a table of "
    "gaps between two; two scores of one query lie 2 sqrt(d_k/pi) apart on average, 9.0 and 36",
)
def test_two_scores_lie_further_apart_than_one_deviates(draw):
    """Two scores of standard normal parts lie 2 sqrt(d_k/pi) apart on average, not sqrt(d_k)."""
    d_k = 64
    q, k, other = exact64(draw(3, 4000, d_k))
    # 4000 independent gaps: their mean has a relative deviation of 1.3%, and the bounds are six of these.
    apart = (q * (k - other)).sum(-1).abs().mean()
    between(apart / (2 * math.sqrt(d_k / math.pi)), 0.92, 1.08, "the mean gap over 2 sqrt(d_k/pi)")
    at_least(apart / math.sqrt(d_k), 1.04, "the mean gap over one score's deviation")


def deviation(attention, q, k):
    """The deviation of raw scores, read back from weights: their logarithms, centred in each row."""
    d_k = q.shape[-1]
    logs = exact64(probe.weights(attention, q, k, scale=d_k**-0.5)).log()
    return float(logs.var(-1).mean().sqrt()) * math.sqrt(d_k)


# d_k: the deviation that the whiteboard prints for a simulation
SIMULATED = {4: "2.0", 64: "8.0", 512: "23"}


def deviation_table(attention, draw):
    rows = []
    for d_k, document in SIMULATED.items():
        q, k = random_head(draw.of(f"scale.deviation|{d_k}"), d_k)
        rows.append((d_k, math.sqrt(d_k), document, deviation(attention, q, k)))
    columns = ("d_k", "sqrt(d_k)", "document", "measured")
    return Table("Deviation of q.k over 512 rows of 8 keys", columns, tuple(rows))


@claim(
    "scale.scores-deviate-by-root-d-k",
    needs="attention",
    source="refresher §11; whiteboard, Attention is a soft lookup",
)
def test_scores_of_random_heads_deviate_by_the_root_of_the_width(impl, draw, receipt):
    """Scores of random queries and keys deviate by sqrt(d_k), so by 1 at any width once divided."""
    # 512 rows of 8 scores: the estimate's relative deviation is 4% at d_k 4 and 1.6% above, and the bands
    # are seven of these, so under 1e-9 a run.
    table = deviation_table(impl.attention, draw)
    receipt(table)
    for d_k, root, _, measured in table.rows:
        band = 0.28 if d_k == 4 else 0.12
        between(measured / root, 1 - band, 1 + band, f"the scores' deviation over sqrt({d_k})")


def levels(attention, q, k, scale):
    """Mean largest weight and mean entropy over 512 rows of 8 keys."""
    w = probe.weights(attention, q, k, scale=scale)
    return float(exact64(w).amax(-1).mean()), float(entropy(w).mean())


# d_k: logit std, max w and H unscaled, max w and H scaled, as the refresher prints one draw of them
DRAWN = {
    4: (1.9642, 0.5222, 1.2986, 0.3401, 1.7548),
    16: (3.9493, 0.7428, 0.6825, 0.3523, 1.7350),
    64: (7.9399, 0.8738, 0.3223, 0.3506, 1.7407),
    256: (15.9159, 0.9326, 0.1691, 0.3533, 1.7318),
    1024: (32.4533, 0.9735, 0.0674, 0.3701, 1.7103),
}


def widths(attention, draw):
    """For each d_k the deviation, and the two levels at scale 1 and at the default scale."""
    found = {}
    for d_k in DRAWN:
        q, k = random_head(draw.of(f"scale.widths|{d_k}"), d_k)
        found[d_k] = [deviation(attention, q, k)]
        for scale in (1.0, None):
            found[d_k] += levels(attention, q, k, scale)
    return found


def widths_table(found):
    """The refresher's table, each of its cells beside the measured one."""
    rows = [
        (d_k, *(f"{a:.3f} | {b:.3f}" for a, b in zip(DRAWN[d_k], measured, strict=True)))
        for d_k, measured in found.items()
    ]
    columns = ("d_k", "deviation", "max w, scale 1", "entropy, scale 1", "max w, default", "entropy, default")
    note = "document | measured, each over 512 rows of 8 keys; ln 8 = 2.079 is the entropy of even weights"
    return Table("Weights of random heads by width", columns, tuple(rows), note)


@claim(
    "scale.keeps-the-entropy",
    needs="attention",
    source="refresher §11, Sidebar, Appendix",
    erratum="the document gives about 1.74 nats at every width; the mean falls from 1.747 at d_k 4 to a "
    "limit of 1.723",
)
def test_entropy_is_level_over_head_widths(impl, draw, receipt):
    """At the default scale random heads of any width hold 1.72 to 1.75 nats and a largest weight near 0.35.

    The level is asserted with the flatness: 1/sqrt(d_model) is flat too, at 2.07 nats.
    """
    # 512 rows a width; a level's deviation is 0.024 nats at d_k 4 and 0.012 above, a largest weight's half
    # of that, so that the bands below are at least six of them, under 1e-8 a run.
    found = widths(impl.attention, draw)
    receipt(widths_table(found))
    for d_k, (*_, largest, nats) in found.items():
        band = 0.17 if d_k == 4 else 0.09
        between(nats, 1.73 - band, 1.73 + band, f"the entropy at d_k {d_k}")
        between(largest, 0.355 - band / 2, 0.355 + band / 2, f"the largest weight at d_k {d_k}")
    all_nats = [nats for *_, nats in found.values()]
    at_most(max(all_nats) - min(all_nats), 0.17, "the entropy's range over widths of 4 to 1024")


@claim("scale.entropy-collapses-without", needs="attention", source="refresher §11, Sidebar")
def test_entropy_collapses_without_the_scale(impl, draw):
    """At scale 1 the entropy of random heads falls from 1.3 nats at d_k 4 to under 0.12 at 1024.

    The fall is gradual, about 2.34/sqrt(d_k): the chance that two leading scores lie within 1.
    """
    # 512 rows: the deviations are 0.04 nats at d_k 4 and 0.009 at 1024, and the bands are seven of these.
    narrow, wide = (levels(impl.attention, *random_head(draw, d_k), 1.0) for d_k in (4, 1024))
    between(narrow[1], 1.29 - 0.27, 1.29 + 0.27, "the entropy at d_k 4")
    at_most(wide[1], 0.14, "the entropy at d_k 1024")
    at_least(wide[0], 0.93, "the largest weight at d_k 1024")


RULES = {
    "1/sqrt(d_k)": lambda d_k: d_k**-0.5,
    "1": lambda d_k: 1.0,
    "1/d_k": lambda d_k: 1 / d_k,
    "1/log2(d_k)": lambda d_k: 1 / math.log2(d_k),
    "1/8": lambda d_k: 0.125,
    "1/sqrt(32 d_k)": lambda d_k: (32 * d_k) ** -0.5,
}


def rules_table(attention, draw):
    heads = {d_k: random_head(draw.of(f"scale.rules|{d_k}"), d_k) for d_k in (4, 64, 512)}
    rows = [
        (rule, *(levels(attention, q, k, scale(d_k))[1] for d_k, (q, k) in heads.items()))
        for rule, scale in RULES.items()
    ]
    columns = ("scale", "at d_k 4", "at 64", "at 512")
    return Table("Entropy of random heads by rule for the scale", columns, tuple(rows), "ln 8 = 2.079")


@claim("scale.root-and-no-other-rule", needs="attention", source="refresher §11, Appendix",
       erratum="the document infers the root from a flat entropy; 1/sqrt(n_heads d_k), the root of the wrong "
       "width, is flat as well, and only its level, 2.07 of at most 2.08 nats, tells them apart")  # fmt: skip
def test_only_the_root_of_the_head_width_keeps_level_and_flatness(impl, draw, receipt):
    """Of scales 1, 1/d_k, 1/log d_k, 1/8 and roots, only 1/sqrt(d_k) keeps a level of 1.7 nats."""
    table = rules_table(impl.attention, draw)
    receipt(table)
    found = {row[0]: row[1:] for row in table.rows}
    for at in found["1/sqrt(d_k)"]:
        between(at, 1.56, 1.9, "the entropy at 1/sqrt(d_k)")
    for rule in ("1", "1/log2(d_k)", "1/8"):
        at_least(max(found[rule]) - min(found[rule]), 0.5, f"the range of entropy at {rule}")
    at_least(min(found["1/d_k"]), 1.88, "the entropy at 1/d_k, which drifts to even weights")
    flat = found["1/sqrt(32 d_k)"]
    at_most(max(flat) - min(flat), 0.02, "the range at 1/sqrt(32 d_k), as flat as the right one")
    at_least(min(flat), 2.0, "and its level")


@claim("scale.level-needs-independence", needs=None, source="refresher §11, Sidebar",
       erratum="the document says that the scale makes head width a free choice; a query and a key with "
       "correlation r score r sqrt(d_k) on average after the division, which grows with width")  # fmt: skip
@pytest.mark.parametrize("share", [0.5, 1.0])
def test_correlated_queries_and_keys_outgrow_the_scale(share):
    """Correlated queries and keys score r sqrt(d_k) on average, scaled, so width is free only without r."""
    for d_k in (4, 8):
        signs = torch.tensor(list(itertools.product((-1.0, 1.0), repeat=d_k)), dtype=torch.float64)
        agreeing = int(d_k * (1 + share) / 2)  # a key that agrees in these parts and differs in the others
        k = torch.cat((signs[:, :agreeing], -signs[:, agreeing:]), dim=-1)
        mean = (signs * k).sum(-1).mean().item() * d_k**-0.5
        close(mean, share * math.sqrt(d_k), 1e-12 * d_k, f"the mean scaled score at d_k {d_k}")


# --- what a saturated softmax passes back ------------------------------------------------------------


def jacobian(attention, scores, device, dtype, *, scale=1.0, width=8):
    """d weights / d scores (n, n): every output read alone, keys of one component, a unit query.

    The scores are scale * scores. A batch row for each output makes one backward pass of it.
    """
    n = len(scores)
    z = torch.as_tensor(scores, dtype=torch.float64).to(dtype).to(device)
    k = first(width, z).repeat(n, 1, 1, 1).requires_grad_()  # (n, 1, n, width)
    q = first(width, torch.ones(1, dtype=dtype, device=device)).repeat(n, 1, 1, 1)
    v = torch.eye(n, width, dtype=dtype, device=device).repeat(n, 1, 1, 1)
    along = torch.eye(n, width, dtype=dtype, device=device)[:, None, None, :]
    (grad,) = gradients(attention(q, k, v, scale=scale), k, along=along)
    return exact64(grad)[:, 0, :, 0] / scale, exact64(z) * scale


def softmax_jacobian(scores):
    p = scores.softmax(0)
    return p.diag() - p[:, None] * p


@claim(
    "scale.jacobian-is-diag-minus-outer",
    needs="attention",
    gradients=True,
    source="refresher §11, Sidebar",
)
@pytest.mark.parametrize("size", [0.5, 2.0])
def test_jacobian_of_the_weights(impl, draw, device, dtype, size):
    """The derivative of the weights p in their scores is diag(p) - p p^T."""
    measured, scores = jacobian(impl.attention, size * exact64(draw(6)), device, dtype)
    # Entries are at most 1/4 and differences of numbers below 1, rounded a few times on the way back.
    eps = torch.finfo(dtype).eps
    close(measured, softmax_jacobian(scores), 4 * eps, "the Jacobian")
    close(measured.sum(0), torch.zeros(6), 6 * eps, "the sum of each column: weights keep their sum")


def saturation_table(attention, device="cpu", dtype=torch.float32):
    """The Jacobian's largest entry by the lead of one score over another."""
    rows = []
    for lead in (0, 1, 2, 4, 8, 16):
        found, _ = jacobian(attention, [0.0, float(lead)], device, dtype)
        p = 1 / (1 + math.exp(-lead))
        rows.append((lead, p, p * (1 - p), float(found.abs().max())))
    columns = ("lead", "largest weight p", "p (1 - p)", "measured")
    return Table("Two keys: the largest entry of the softmax's Jacobian", columns, tuple(rows))


@claim(
    "scale.jacobian-vanishes-at-a-winner",
    needs="attention",
    gradients=True,
    source="refresher §11, Sidebar; whiteboard, Attention is a soft lookup",
)
def test_jacobian_vanishes_as_one_weight_takes_all(impl, device, dtype, receipt):
    """As one weight p nears 1 every entry of the Jacobian falls to at most 1 - p: no gradient passes."""
    eps = torch.finfo(dtype).eps
    table = saturation_table(impl.attention, device, dtype)
    receipt(table)
    for lead, largest, exact, measured in table.rows:
        close(measured, exact, 4 * eps, f"the largest entry at a lead of {lead}")
        at_most(measured, 1 - largest + 4 * eps, f"the largest entry at a lead of {lead}")


@claim(
    "scale.keeps-the-gradient",
    needs="attention",
    gradients=True,
    source="whiteboard, Attention is a soft lookup",
)
def test_the_scale_keeps_a_gradient_that_raw_scores_lose(impl, device, dtype):
    """Scores 8, 0, -8 pass 553 times less gradient through the softmax than the same divided by 8."""
    eps = torch.finfo(dtype).eps
    norm = lambda found: float(torch.linalg.matrix_norm(found, ord=2))  # noqa: E731
    saturated = norm(jacobian(impl.attention, [8.0, 0.0, -8.0], device, dtype, scale=1.0)[0])
    blended = norm(jacobian(impl.attention, [8.0, 0.0, -8.0], device, dtype, scale=0.125)[0])
    raw, scaled = (
        norm(softmax_jacobian(torch.tensor([8.0, 0.0, -8.0], dtype=torch.float64) * s)) for s in (1, 0.125)
    )
    close(saturated, raw, 8 * eps, "the Jacobian's norm at scores 8, 0, -8")
    close(blended, scaled, 8 * eps * 8, "its norm at scores 1, 0, -1")  # divided by the scale of 1/8
    between(scaled / raw, 552, 554, "the factor between the exact ones")


def query_gradients(attention, draw, d_k, scale):
    """|d loss / d query| (512,) for a loss that reads the output along random directions."""
    q, k, v, along = (
        draw(1, 32, 16, d_k),
        draw(1, 32, N_KEYS, d_k),
        draw(1, 32, N_KEYS, 16),
        draw(1, 32, 16, 16),
    )
    q.requires_grad_()
    (grad,) = gradients(attention(q, k, v, scale=scale), q, along=along)
    return exact64(grad).norm(dim=-1).flatten()


# 16-bit backward passes may form the gradient as a difference of rounded numbers near 1, and then what is
# left of a saturated row is rounding: the claim can be seen from float32 on.
@claim(
    "scale.typical-gradient-vanishes-without",
    needs="attention",
    gradients=True,
    dtypes=("float32",),
    source="refresher §11, Sidebar; whiteboard, Attention is a soft lookup",
    erratum="the document says that without the scale no gradient reaches q and k; at d_k 1024 the median "
    "query gets less than 1/1000, but a few near-tied rows so much that the mean is 3 times larger, and at "
    "d_k 64 the median is nearly what it is with the scale",
)
def test_the_typical_query_loses_its_gradient_not_the_mean(impl, draw):
    """Without the scale most queries of a wide head get no gradient, while the mean over queries grows."""
    # 512 queries. At d_k 1024 the median ratio was below 5e-4 in all of 60 draws, the silent share 0.57 with
    # deviation 0.02, and the logarithm of the mean ratio 1.18 with deviation 0.14: the bounds are at least
    # eight deviations away. At 64 the median ratio is 0.8 with deviation 0.1.
    raw, scaled = (query_gradients(impl.attention, draw, 1024, scale) for scale in (1.0, 1024**-0.5))
    typical = scaled.median()
    at_most(raw.median() / typical, 0.02, "the median gradient without the scale, over the median with it")
    at_least((raw < 1e-3 * typical).double().mean(), 0.35, "the share of queries left without gradient")
    same((scaled < 1e-3 * typical).double().mean().item(), 0.0, "and their share with the scale")
    # The document's statement, taken for the whole gradient or for every width, fails:
    at_least(raw.mean() / scaled.mean(), 1.0, "the mean gradient without the scale, over the mean with it")
    raw, scaled = (query_gradients(impl.attention, draw, 64, scale) for scale in (1.0, 64**-0.5))
    at_least(raw.median() / scaled.median(), 0.2, "the median's ratio at d_k 64")


# --- where overflow does come in ---------------------------------------------------------------------


@claim(
    "scale.applies-before-float16-overflows",
    needs="attention",
    dtypes=("float16",),
    source="refresher §11, Sidebar",
    erratum="the document says that overflow is not the problem; of the softmax that is so, but in float16 "
    "q.k itself passes 65504 before any scale, and a kernel that multiplies first returns NaN",
)
def test_products_past_float16_are_scaled_in_time(impl, device, dtype):
    """In float16 a product q.k past 65504 still weighs as its scaled score says: it never overflows."""
    # q.k is 65536 and 65664, and at scale 1/64 the scores are 1024 and 1026, which float16 holds.
    q = torch.full((1, 1, 1, 64), 32.0, dtype=dtype, device=device)
    k = torch.full((1, 1, 2, 64), 32.0, dtype=dtype, device=device)
    k[..., 1, 0] = 36.0
    w = exact64(probe.weights(impl.attention, q, k, scale=1 / 64))[0, 0, 0]
    exact = torch.tensor([-2.0, 2.0], dtype=torch.float64).sigmoid()
    close(w, exact, 4 * torch.finfo(dtype).eps, "the weights of scores 1024 and 1026")
    # The document's statement fails for a product that is kept in float16:
    same((q.cpu() @ k.cpu().mT).isinf().all().item(), True, "q k^T kept in float16 is infinite")


# --- the experiment ----------------------------------------------------------------------------------


def learn_a_lookup(draw, d_k, scale, loss, optimizer, steps=150, n=16, d_model=32):
    """One attention layer learns to answer each of n tokens with the next one: loss and accuracy reached."""
    from refimpl import attention

    x, answer = draw(n, d_model), torch.eye(n).roll(1, dims=0)
    matrices = [(draw(d_model, d_k) / math.sqrt(d_model)).requires_grad_() for _ in range(2)]
    step = optimizer(matrices)
    for _ in range(steps):
        q, k = (x @ w for w in matrices)  # unit variance at the start
        out = attention(q[None, None], k[None, None], torch.eye(n)[None, None], scale=scale)[0, 0]
        value = loss(out, answer)
        step.zero_grad()
        value.backward()
        step.step()
    return value.item(), (out.argmax(-1) == answer.argmax(-1)).double().mean().item()


def squared_error(out, answer):
    return (out - answer).square().sum(-1).mean()


def cross_entropy(out, answer):
    return -(out * answer).sum(-1).clamp(min=1e-30).log().mean()


@pytest.mark.slow
@claim(
    "scale.training-stalls-without",
    needs=None,
    source="refresher §11; whiteboard, Attention is a soft lookup",
    erratum="the documents say that training stalls without the scale; it does for a squared error, while a "
    "cross-entropy on the weights still learns everything at d_k 64",
)
@pytest.mark.parametrize("trial", range(3))
def test_training_stalls_without_the_scale(draw, trial):
    """A wide head that starts saturated does not learn a look-up that it learns at once with the scale."""
    from functools import partial

    # In eight trials the scaled loss ended at or below 0.0011 and the raw one at or above 1.62.
    sgd = partial(torch.optim.SGD, lr=1.0)
    reached = learn_a_lookup(draw, 512, None, squared_error, sgd)
    stalled = learn_a_lookup(draw, 512, 1.0, squared_error, sgd)
    at_most(reached[0], 0.05, "the loss with the scale")
    at_least(stalled[0], 1.0, "the loss without")
    same(reached[1], 1.0, "the accuracy with the scale")
    at_most(stalled[1], 0.5, "the accuracy without")
    # "Stalls" does not hold for every loss: cross-entropy undoes the softmax's own derivative.
    learned = learn_a_lookup(draw, 64, 1.0, cross_entropy, partial(torch.optim.Adam, lr=1e-2))
    same(learned[1], 1.0, "the accuracy of a raw head of 64 under cross-entropy")


@pytest.mark.receipts("scale")
def test_receipts(receipt, draw):
    from refimpl import attention

    receipt(
        leads_table(attention),
        worked_table(*(eight_zero_minus_eight(attention, "cpu", torch.float32, s) for s in (1.0, None))),
        deviation_table(attention, draw),
        widths_table(widths(attention, draw)),
        rules_table(attention, draw),
        saturation_table(attention),
    )
