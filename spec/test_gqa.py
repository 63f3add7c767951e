"""Grouped-query attention: several query heads share one key and value head."""

import pytest
import torch

from harness import (
    SMALL,
    Table,
    agrees,
    at_least,
    claim,
    close,
    configs,
    formula,
    measure,
    probe,
    same,
    sizes,
)
from refimpl import LLAMA_3_8B, cost

# (query heads, key/value heads): from heads of their own to one for all, never as many groups as members.
GROUPS = [(5, 5), (6, 2), (6, 3), (8, 2), (15, 3), (6, 1)]


# --- who reads what ----------------------------------------------------------------------------------


@claim(
    "gqa.query-head-reads-its-group",
    needs="attention",
    source="refresher §5, §7, Appendix; whiteboard, The KV cache",
)
@pytest.mark.parametrize("n_heads, n_kv_heads", [*GROUPS, (32, 8)])
@pytest.mark.parametrize("causal", [False, True], ids=["open", "causal"])
def test_query_head_reads_the_head_of_its_group(impl, draw, causal, n_heads, n_kv_heads):
    """Query head h reads key/value head h // (n_heads // n_kv_heads): neighbours share.

    Full multi-head attention (groups of one) and multi-query attention (one group) are the two ends.
    """
    group = n_heads // n_kv_heads
    q, k, v = draw(2, n_heads, 3, 8), draw(2, n_kv_heads, 5, 8), draw(2, n_kv_heads, 5, 8)
    k_other, v_other = draw(2, n_kv_heads, 5, 8), draw(2, n_kv_heads, 5, 8)
    out = impl.attention(q, k, v, causal=causal, scale=0.3)
    for j in range(n_kv_heads):
        k_new, v_new = k.clone(), v.clone()
        k_new[:, j], v_new[:, j] = k_other[:, j], v_other[:, j]
        for name, keys, values in (("keys", k_new, v), ("values", k, v_new)):
            after = impl.attention(q, keys, values, causal=causal, scale=0.3)
            readers = list(range(j * group, (j + 1) * group))
            same(probe.moved(out, after, dim=1), readers, f"query heads that read the {name} of head {j}")


@claim(
    "gqa.equals-shared-full-heads",
    needs="attention",
    source="refresher §5, §7; whiteboard, The KV cache",
)
@pytest.mark.parametrize("n_heads, n_kv_heads", [*GROUPS, (18, 18), (32, 8)])
@pytest.mark.parametrize("causal", [False, True], ids=["open", "causal"])
def test_grouped_attention_equals_full_heads_that_repeat(impl, draw, causal, n_heads, n_kv_heads):
    """The mechanism is that of full heads: groups give what repeated keys and values give."""
    n_batch, n_k = (2, 5) if n_heads < 16 else (1, 3)
    n_q = n_k if causal else n_k - 2
    q = draw(n_batch, n_heads, n_q, 8)
    k, v = draw(n_batch, n_kv_heads, n_k, 8), draw(n_batch, n_kv_heads, n_k, 10)

    def grouped(attention, q, k, v):
        return attention(q, k, v, causal=causal, scale=0.3)

    shared = agrees(
        impl.attention, formula.attention, q, k, v, quantity=grouped, what="groups, by the formula"
    )
    many = (x.repeat_interleave(n_heads // n_kv_heads, dim=1) for x in (k, v))
    full = impl.attention(q, *many, causal=causal, scale=0.3)
    close(shared, full, 4 * 5 * torch.finfo(q.dtype).eps * float(v.abs().max()), "groups against full heads")


@claim(
    "gqa.model-equals-repeated-projections",
    needs="Transformer",
    through=("attention",),
    source="refresher §1, §5, §7; whiteboard, The KV cache",
)
@pytest.mark.parametrize("n_heads, n_kv_heads", [(6, 2), (6, 3), (6, 1)])
def test_grouped_model_equals_full_model_with_repeated_rows(impl, build, draw, dtype, n_heads, n_kv_heads):
    """A model with groups is a full one whose key and value projections repeat within each group."""
    few = SMALL.but(n_heads=n_heads, n_kv_heads=n_kv_heads)
    many = SMALL.but(n_heads=n_heads, n_kv_heads=n_heads)
    weights = draw.weights(few)
    full = dict(weights)
    for name, w in weights.items():
        if "k_proj" in name or "v_proj" in name:
            heads = w.unflatten(0, (n_kv_heads, -1))
            full[name] = heads.repeat_interleave(n_heads // n_kv_heads, dim=0).flatten(0, 1)
    tokens = draw.tokens(SMALL.n_vocab, 2, 7)
    within = 2 * probe.logits_bound(few, weights, tokens, dtype)
    with torch.no_grad():
        close(build(few, weights)(tokens), build(many, full)(tokens), within, "logits with groups")


# --- what shrinks ------------------------------------------------------------------------------------


def matrices(make, n_kv_heads):
    """The attention matrices of one Llama-3-8B layer with this many key/value heads, as (in, out)."""
    model = make(LLAMA_3_8B.but(n_layers=1, n_kv_heads=n_kv_heads))
    model(torch.zeros(1, 4, dtype=torch.int64, device="meta"))
    return {name: tuple(p.mT.shape) for name, p in measure.matrices(model, "self_attn").items()}


def shapes_table(make):
    """The attention matrices with 32 and with 8 key/value heads, as printed and as built."""
    full, shared = matrices(make, 32), matrices(make, 8)
    printed = {
        "q_proj": ("(4096, 4096)", "(4096, 4096)"),
        "k_proj": ("(4096, 4096)", "(4096, 1024)"),
        "v_proj": ("(4096, 4096)", "(4096, 1024)"),
        "o_proj": ("(4096, 4096)", "(4096, 4096)"),
    }
    rows = [(name, a, str(full[name]), b, str(shared[name])) for name, (a, b) in printed.items()]
    totals = [f"{sum(a * b for a, b in found.values()) / 1e6:.1f}M" for found in (full, shared)]
    rows.append(("all four", "67.1M", totals[0], "41.9M", totals[1]))
    columns = ("matrix", "MHA (document)", "32 kv heads", "Llama-3-8B (document)", "8 kv heads")
    return Table("The attention matrices of one block", columns, tuple(rows))


@claim(
    "gqa.projections-shrink",
    needs="Transformer",
    on="meta",
    source="refresher §7, Appendix; whiteboard, The KV cache",
    erratum="read by the letter, the whiteboard has the K/V projections shrink from 4 d^2 to 2.5 d^2; those "
    "go from 2 d^2 to 0.5 d^2, and 4 and 2.5 count all four matrices",
)
def test_key_and_value_projections_shrink_with_their_heads(impl, receipt):
    """A projection is as wide as the heads it feeds: 8 instead of 32 take attention from 4 to 2.5 d^2.

    W_q and W_o keep their size, W_k and W_v shrink to a quarter.
    """

    def make(config):
        return impl.Transformer(config, device="meta", dtype=torch.float32)

    table = shapes_table(make)
    receipt(table)
    for matrix, printed_full, full, printed_shared, shared in table.rows:
        same((full, shared), (printed_full, printed_shared), f"the size of {matrix}")
    for n_kv_heads, keys_and_values, everything in ((32, 2.0, 4.0), (8, 0.5, 2.5), (1, 0.0625, 2.0625)):
        found = {name: a * b / 4096**2 for name, (a, b) in matrices(make, n_kv_heads).items()}
        same(found["k_proj"] + found["v_proj"], keys_and_values, f"d^2 in W_k, W_v with {n_kv_heads} heads")
        same(sum(found.values()), everything, f"d^2 in all four with {n_kv_heads} key/value heads")
        config = LLAMA_3_8B.but(n_kv_heads=n_kv_heads)
        same(cost.attention_parameters(config), int(everything * 4096**2), "the same by the closed form")


# --- beyond groups -----------------------------------------------------------------------------------


def latent_table():
    """What DeepSeek-V2 caches against its dense predecessor, step by step, from the two configurations."""
    old, new = configs.read("deepseek-llm-67b"), configs.read("deepseek-v2")
    groups, latent = sizes.cached_numbers(old), sizes.cached_numbers(new)
    full = new.n_heads * (new.d_head + new.d_value)
    whole = groups * old.n_layers * 16
    steps = (
        (f"DeepSeek 67B: {old.n_layers} layers, 8 kv heads of 128", groups, old.n_layers, 16, "-"),
        (f"its cache with {new.n_layers} layers", groups, new.n_layers, 16, "-"),
        (f"DeepSeek-V2: {new.n_layers} layers, latent of 512 and 64 rotary", latent, new.n_layers, 16, "-"),
        ("the same, cached in 6 bits", latent, new.n_layers, 6, "93.3%"),
    )
    rows, before = [], whole
    for what, numbers, layers, bits, document in steps:
        size = numbers * layers * bits
        alone = f"{1 - size / before:.1%}" if size < before else "-"
        rows.append((what, numbers * layers, bits, alone, document, f"{1 - size / whole:.1%}"))
        before = size
    columns = ("cache", "numbers a token", "bits each", "this step saves", "document", "less by, in all")
    heads = f"{new.n_heads} heads of keys {new.d_head} wide and values {new.d_value} wide"
    note = f"Without the latent DeepSeek-V2 has {full * new.n_layers:,} numbers a token: {heads}."
    return Table("A cache of latents against a cache of groups", columns, tuple(rows), note)


@claim(
    "gqa.latent-cache-reduction",
    needs=None,
    source="whiteboard, The KV cache",
    erratum="the document gives the 93.3% as the effect of caching a latent; that alone is 71.9% a layer "
    "against a grouped cache, 82.2% with fewer layers, and 93.3% counts 6-bit numbers against 16-bit ones",
)
def test_latents_and_quantisation_together_make_the_reduction(receipt):
    """Caching a latent saves DeepSeek-V2 82.2% of its predecessor's cache, and 93.3% in 6 bits."""
    table = latent_table()
    receipt(table)
    numbers = [194_560, 122_880, 34_560, 34_560]
    same([row[1] for row in table.rows], numbers, "numbers cached a token")
    found = [(row[3], row[-1]) for row in table.rows[1:]]
    expected = [("36.8%", "36.8%"), ("71.9%", "82.2%"), ("62.5%", "93.3%")]
    same(found, expected, "what fewer layers, the latent and 6 bits save, each alone and so far")


# --- any model ---------------------------------------------------------------------------------------


def sharing_table(s):
    """One layer's cache for a token, against heads that share nothing, and a single head for all."""
    full, one = s.n_heads * (s.d_head + s.d_value), s.d_head + s.d_value
    cached = sizes.cached_numbers(s)
    how = f"a latent for {s.n_heads} heads" if s.latent else f"{s.n_kv_heads} heads for {s.n_heads}"
    rows = (
        ("a key and a value for each query head", full, "1.00x"),
        (f"as configured: {how}", cached, f"{full / cached:.2f}x"),
        ("one key and value for all", one, f"{full / one:.2f}x"),
    )
    return Table(f"One layer's cache of {s.name}", ("cache", "numbers a token", "smaller by"), rows)


@claim("gqa.model-sharing", needs=None, source="refresher §5, §6; whiteboard, The KV cache")
def test_cache_of_any_model_shrinks_by_what_its_heads_share(model, receipt):
    """A cache is smaller than full heads' by the query heads to a kv head, and by more with a latent."""
    full, cached = model.n_heads * (model.d_head + model.d_value), sizes.cached_numbers(model)
    if model.latent:
        at_least(full / cached, 1, "full heads over the latent and its rotary key")
        same(cached, model.latent.kv_rank + model.latent.d_rope, "numbers cached, whatever the heads")
    else:
        same(full, cached * (model.n_heads // model.n_kv_heads), "numbers of full heads")
    receipt(sharing_table(model))


@pytest.mark.receipts("gqa")
def test_receipts(receipt):
    import refimpl

    receipt(
        shapes_table(lambda config: refimpl.Transformer(config, device="meta")),
        latent_table(),
        sharing_table(configs.read("llama-3-8b")),
        sharing_table(configs.read("deepseek-v3")),
    )
