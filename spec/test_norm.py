"""RMSNorm: a vector brought back to one size, so that the next layer knows what to expect.

x / sqrt(mean(x^2) + eps) * gain, for each token by itself. The documents print it without eps, which
decides what happens to small vectors and to zero.
"""

import math

import pytest
import torch
import torch.nn.functional as F

from harness import Table, agrees, at_least, at_most, between, claim, close, formula, same
from harness.checks import exact64

WIDE = "whiteboard, One block, and where the parameters live"
TINY = 1e-24  # an eps that changes nothing, where a claim is not about eps


def rms(x):
    """Root mean square of the last dimension, in float64."""
    return exact64(x).square().mean(-1).sqrt()


def ones(width, x):
    """A gain of 1 beside x."""
    return torch.ones(width, dtype=x.dtype, device=x.device)


def size_bound(width, dtype):
    """The allowed relative error of an output's size: a few roundings, and a sum of `width` squares."""
    return (4 + math.sqrt(width) / 4) * torch.finfo(dtype).eps


# --- the formula -------------------------------------------------------------------------------------


# Widths that are no power of two show columns that were padded, odd ones a last column left out. Columns grow
# to the right, so that leaving some out of the mean shows. Gains of both signs show where they enter.
@claim("norm.formula", needs="rms_norm", source=f"refresher §8; {WIDE}")
@pytest.mark.parametrize("width", [3, 40, 65, 100, 1536, 8192])
@pytest.mark.parametrize("size", [0.05, 1.0, 50.0])
def test_norm_is_x_over_its_root_mean_square_times_gain(impl, draw, width, size):
    """RMSNorm is x over its root mean square, times a gain, over the last dimension and at any width."""
    n = 5 if width < 1000 else 1
    x, gain = size * draw(2, n, width), draw.gains(width)
    x = x * torch.linspace(0.25, 2.0, width, dtype=x.dtype).to(x.device)
    agrees(impl.rms_norm, formula.rms_norm, x, gain, eps=TINY, what="the norm's output")
    x[0, 0, -1] = min(1e5, torch.finfo(x.dtype).max / 2)  # as trained models have them
    agrees(impl.rms_norm, formula.rms_norm, x, gain, eps=TINY, what="the output beside one huge entry")


@claim("norm.output-has-unit-size", needs="rms_norm", source=f"refresher §8; {WIDE}")
@pytest.mark.parametrize("size", [2.0**-6, 1.0, 2.0**9])
@pytest.mark.parametrize("width", [40, 96])
def test_output_has_unit_root_mean_square(impl, draw, dtype, size, width):
    """At a gain of 1 the output has root mean square 1 and keeps its direction, however large the input."""
    x = draw(2, 5, width)
    out, scaled = (impl.rms_norm(c * x, ones(width, x), eps=TINY) for c in (1.0, size))
    within = size_bound(width, dtype)
    close(rms(scaled), torch.ones(2, 5), within, f"the output's size for an input of size {size}")
    # A power of two times x holds the same digits, so that only the scale's effect remains.
    close(scaled, exact64(out), within * float(out.abs().max()), "norm(c x) against norm(x)")


def small_rows(width, x, size):
    """Rows (3, width) of +-size, so that mean(x^2) is size^2 exactly."""
    signs = 1.0 - 2.0 * (torch.arange(3 * width).view(3, width) * 7 % 5 % 2)
    return (size * signs).to(x.dtype).to(x.device)


# size, eps: the output's root mean square, size / sqrt(size^2 + eps), falls short of 1
SHORT = ((1e-3, 1e-6), (1e-4, 1e-6), (1.0, 0.1), (0.01, 1e-5), (2.0, 5.0))


def eps_table(rms_norm, like):
    """The output's size by the input's, for inputs that eps can be seen in."""
    rows = []
    for size, eps in SHORT:
        x = small_rows(40, like, size)
        held = float(exact64(x).abs().max())  # the size as rounded
        measured = float(rms(rms_norm(x, ones(40, like), eps=eps)).mean())
        rows.append((size, eps, 1.0, held / math.sqrt(held**2 + eps), measured))
    columns = ("input size", "eps", "document", "size / sqrt(size^2 + eps)", "measured")
    return Table("RMSNorm's output size at a gain of 1", columns, tuple(rows))


@claim(
    "norm.eps-is-added-under-the-root",
    needs="rms_norm",
    source="refresher §8",
    erratum="the document's formula has no eps and gives every vector size 1; with eps 1e-6 entries of 1e-4 "
    "come out at 0.0995",
)
def test_output_size_falls_short_of_one_by_eps(impl, draw, dtype, receipt):
    """A row of size r comes out at r / sqrt(r^2 + eps): eps is added under the root, and is the one given."""
    table = eps_table(impl.rms_norm, draw(1))
    receipt(table)
    for size, eps, printed, exact, measured in table.rows:
        close(measured, exact, 8 * torch.finfo(dtype).eps, f"the output for size {size} and eps {eps}")
        at_least(printed - measured, 0.02, "what the document's figure exceeds it by")
    # Beside a huge entry eps is nothing, unless it is added after a rescaling by that entry.
    x = small_rows(40, draw(1), 1.0)
    x[:, 0] = 3e4
    out, r = impl.rms_norm(x, ones(40, x), eps=0.1), rms(x)
    exact = r / (r**2 + 0.1).sqrt()
    close(rms(out), exact, 8 * torch.finfo(dtype).eps, "the output's size beside an entry of 3e4")


@claim(
    "norm.zero-stays-zero",
    needs="rms_norm",
    source="refresher §8",
    erratum="the document's formula, without eps, is 0/0 for a vector of zeros",
)
def test_zero_row_stays_zero(impl, draw):
    """A row of zeros, as of padding, comes out as zeros, and its neighbours as if it were not there."""
    x, gain = draw(2, 5, 40), draw.gains(40)
    x[0, 2] = 0.0
    out = agrees(impl.rms_norm, formula.rms_norm, x, gain, eps=1e-6, what="the output beside a row of zeros")
    same(bool((out[0, 2] == 0).all()), True, "the row of zeros comes out as zeros")
    printed = x[0, 2] / x[0, 2].square().mean().sqrt()
    same(bool(printed.isnan().all()), True, "the document's formula is NaN there")


# --- 16 bits -----------------------------------------------------------------------------------------


@claim(
    "norm.given-eps-in-16-bits",
    needs="rms_norm",
    dtypes=("bfloat16", "float16"),
    source=f"refresher §8; {WIDE}",
)
@pytest.mark.parametrize("size", [0.05, 0.02])
def test_small_16_bit_rows_reach_unit_size(impl, draw, dtype, size):
    """In 16 bits rows of size 0.05 come out at size 1: the eps given counts, not the dtype's own."""
    x = small_rows(96, draw(1), size)
    out = impl.rms_norm(x, ones(96, x), eps=1e-6)
    exact = size / math.sqrt(size**2 + 1e-6)
    close(rms(out), torch.full((3,), exact), 4 * torch.finfo(dtype).eps, "the output's size")


@claim("norm.squares-fit-float16", needs="rms_norm", dtypes=("float16",), source="refresher §8")
@pytest.mark.parametrize("size", [300.0, 30000.0])
def test_large_float16_rows_reach_unit_size(impl, draw, dtype, size):
    """In float16 rows of size 300, whose squares do not fit float16, come out at size 1."""
    x = small_rows(96, draw(1), size)
    out = impl.rms_norm(x, ones(96, x), eps=1e-6)
    close(rms(out), torch.ones(3), 4 * torch.finfo(dtype).eps, "the output's size")


# --- what survives -----------------------------------------------------------------------------------


@claim(
    "norm.gain-per-dimension",
    needs="rms_norm",
    source="refresher §8",
    erratum="the document says that relative proportions survive; with the gain that its next formula "
    "introduces they survive only up to the gains: entry by entry out/x varies by a factor of up to 3",
)
def test_gain_multiplies_each_dimension(impl, draw, dtype):
    """The gain multiplies each dimension after the norm, and proportions survive up to the gains."""
    x, gain = draw(2, 5, 40), draw.uniform(0.5, 1.5, 40)
    x = torch.where(x.abs() < 0.1, torch.full_like(x, 0.5), x)  # so that out/x is well defined
    plain, gained = impl.rms_norm(x, ones(40, x), eps=TINY), impl.rms_norm(x, gain, eps=TINY)
    within = size_bound(40, dtype)
    kept = exact64(plain) / exact64(x)
    close(kept / kept[..., :1], torch.ones(2, 5, 40), 2 * within, "proportions at a gain of 1")
    close(exact64(gained) / exact64(plain), exact64(gain).expand(2, 5, 40), 3 * within, "the gain's effect")
    kept = exact64(gained) / exact64(x)
    at_least(kept.amax(-1) / kept.amin(-1), 1.5, "how far out/x varies over a row, with gains")


@claim("norm.keeps-the-mean", needs="rms_norm", source=f"refresher §8; {WIDE}")
def test_mean_is_not_subtracted(impl, draw, dtype):
    """RMSNorm subtracts no mean, as LayerNorm does: a constant row comes out as the gain, not as zeros."""
    gain = draw.uniform(0.5, 1.5, 40)
    for value in (3.0, -0.5):
        x = torch.full((1, 1, 40), value, dtype=gain.dtype, device=gain.device)
        out = impl.rms_norm(x, gain, eps=TINY)
        exact = math.copysign(1.0, value) * exact64(gain)[None, None]
        close(out, exact, 2 * size_bound(40, dtype), f"the norm of a row of {value}")
    # On rows without a mean the two agree, so that no test on such rows tells them apart.
    half = draw(2, 5, 20)
    x = torch.cat((half, -half), dim=-1)
    layer = F.layer_norm(exact64(x), (40,), exact64(gain), None, TINY)
    out = impl.rms_norm(x, gain, eps=TINY)
    close(out, layer, 2 * size_bound(40, dtype) * float(layer.abs().max()), "the norm of a row without mean")


@claim("norm.each-token-alone", needs="rms_norm", source="refresher §8, §9")
def test_each_token_is_normalised_alone(impl, draw):
    """Normalisation is per token: making one token 100 times larger changes no other token's output."""
    x, gain = draw(2, 5, 40), draw.uniform(0.5, 1.5, 40)
    before = impl.rms_norm(x, gain, eps=1e-6)
    x[0, 3] *= 100.0
    after = impl.rms_norm(x, gain, eps=1e-6)
    others = [i for i in range(5) if i != 3]
    same(after[0, others], before[0, others], "the other tokens of the sequence")
    same(after[1], before[1], "the other sequence")


@claim(
    "norm.nonlinear-too",
    needs="rms_norm",
    source="refresher, short version, §9",
    erratum="the document says that the FFN is the only place where a token's own features are transformed "
    "nonlinearly; RMSNorm fails its doubling test by 50%",
)
def test_norm_is_nonlinear(impl, draw, dtype):
    """RMSNorm is nonlinear in a token's own features: norm(2x) is norm(x), not 2 norm(x)."""
    x, gain = draw(2, 5, 40), draw.uniform(0.5, 1.5, 40)
    once, doubled = (exact64(impl.rms_norm(c * x, gain, eps=TINY)) for c in (1.0, 2.0))
    off_by = (doubled - 2 * once).norm() / (2 * once).norm()
    close(off_by, 0.5, 4 * torch.finfo(dtype).eps, "how far norm(2x) is off 2 norm(x)")


# --- why it is there ---------------------------------------------------------------------------------


def trunk(draw, normalise, *, size=1.0, n_blocks=16, d=32, n=4):
    """The residual stream's size after each block, until it overflows; normalise comes before a sublayer."""
    from refimpl import attention, feed_forward

    def matrix(d_in, d_out):
        return draw(d_in, d_out) * size * math.sqrt(2 / (d_in + d_out))  # Xavier

    x, sizes = draw(1, n, d), []
    for _ in range(n_blocks):
        y = normalise(x)
        q, k, v = ((y @ matrix(d, d)).unflatten(-1, (4, 8)).transpose(1, 2) for _ in range(3))
        x = x + attention(q, k, v, causal=True, scale=8**-0.5).transpose(1, 2).flatten(-2) @ matrix(d, d)
        y = normalise(x)
        x = x + feed_forward(y, matrix(d, 3 * d), matrix(d, 3 * d), matrix(3 * d, d))
        sizes.append(float(rms(x).max()))
        if not math.isfinite(sizes[-1]):
            break
    return sizes


@claim(
    "norm.keeps-a-stack-finite",
    needs="rms_norm",
    source="refresher §8",
    erratum="the document says that without a norm activations drift until they overflow or vanish; that "
    "depends on the weights' size: at a tenth of it nothing drifts in 16 blocks",
)
def test_norm_keeps_a_deep_stack_finite(impl, draw):
    """With Xavier weights 16 blocks overflow without norms, and stay below a size of 20 with them."""
    with torch.no_grad():
        normed = trunk(draw, lambda x: impl.rms_norm(x, ones(32, x), eps=1e-6))
        bare = trunk(draw, lambda x: x)
        small = trunk(draw, lambda x: x, size=0.1)
    # In 160 draws the largest size with norms was 6.1, and without them no stack passed its 13th block.
    at_most(torch.tensor(normed), 20.0, "the stream's size after each block, with norms")
    same(math.isfinite(bare[-1]), False, "the stream without norms is finite after 16 blocks")
    between(small[-1] / small[0], 0.8, 1.25, "the drift without norms at a tenth of Xavier's size")


@pytest.mark.receipts("norm")
def test_receipts(receipt, draw):
    from refimpl import rms_norm

    receipt(eps_table(rms_norm, draw(1)))
