"""Generation against the clock: what a cache saves, what a token costs to read and to write, what rows share.

The documents derive all of it from bytes and FLOPs of accelerators. A small model on any device shows the
growth and the order of things; how far apart they are depends on the device's FLOPs a byte.
"""

import torch

from benchmarks.clock import clear_of_launches, exponent, here, in_turn, ms, ratio, sized
from harness import Table, at_least, at_most, between, claim, measure, same
from refimpl import ModelConfig, cost

ANY = ("attention", "rope", "rms_norm", "feed_forward")

SMALL = ModelConfig(n_vocab=256, d_model=256, n_layers=2, n_heads=4, n_kv_heads=2, d_head=64, d_ff=704)
WIDE = SMALL.but(n_vocab=64, d_model=512, n_layers=1, n_heads=8, d_ff=1408)
LARGE = SMALL.but(d_model=512, n_layers=4, n_heads=8, n_kv_heads=8, d_ff=1408)
ELSEWHERE = LARGE.but(d_model=2048, n_heads=16, n_kv_heads=16, d_head=128, d_ff=5504)


def model_of(build, device, small=SMALL):
    """The model, and its sizes: large enough that arithmetic and traffic count, and not only launching."""
    config = sized(device, small, ELSEWHERE)
    return build(config), config


def stepwise(model, tokens, cache):
    """One token a pass, each behind the cache of those before it."""
    for i in range(tokens.shape[1]):
        model(tokens[:, i : i + 1], cache)


def recompute(model, tokens):
    """One token a pass, each with everything before it read again."""
    for i in range(tokens.shape[1]):
        model(tokens[:, : i + 1])


def filled(model, config, draw, batch, n):
    """A cache with n tokens in each of batch rows, read in pieces whose scores fill half a gigabyte."""
    cache, piece = model.new_cache(), max(1, 2**27 // (batch * config.n_heads * n))
    for tokens in draw.tokens(config.n_vocab, batch, n).split(piece, dim=1):
        model(tokens, cache)
    return cache


def decode_step(model, config, draw, batch, n):
    """A step of one token in each of batch rows behind n tokens, and the cache that it reads and extends."""
    cache, token = filled(model, config, draw, batch, n), draw.tokens(config.n_vocab, batch, 1)
    return lambda: model(token, cache), cache


def judge_growing_caches_only(impl, config, dtype, few, many):
    """Raise "not offered" where a step scores every slot of a cache with room set aside, filled or not.

    That is where it has as many FLOPs behind few tokens as behind many, counted on "meta"; what cannot run
    or be counted there is judged by its time.
    """

    def step(n):
        model = impl.Transformer(config.but(n_layers=1), device="meta", dtype=dtype)
        before, one = (torch.zeros(1, m, dtype=torch.int64, device="meta") for m in (n, 1))
        cache = model.new_cache()
        model(before, cache)
        return measure.flops(lambda: model(one, cache))

    try:
        with torch.no_grad():
            equal = step(few) == step(many)
    except Exception:
        return
    if equal:
        raise NotImplementedError("not offered: its cache has room set aside, and a step scores all of it")


# --- with a cache and without ---------------------------------------------------------------------------


def growth_times(build, draw, device):
    model, config = model_of(build, device, WIDE)
    counts, calls = sized(device, (48, 96, 192), (64, 192, 576)), {}
    for n in counts:
        tokens = draw.tokens(config.n_vocab, 1, n)
        calls |= {
            ("cached", n): lambda tokens=tokens: stepwise(model, tokens, model.new_cache()),
            ("uncached", n): lambda tokens=tokens: recompute(model, tokens),
            ("one pass", n): lambda tokens=tokens: model(tokens),
        }
    with torch.no_grad():
        return in_turn(calls, device, rounds=3), counts


def growth_table(times, counts):
    rows = [
        (n, *(ms(times, (who, n)) for who in ("cached", "uncached", "one pass")),
         ratio(times, ("uncached", n), ("cached", n)), ratio(times, ("uncached", n), ("one pass", n)))
        for n in counts
    ]  # fmt: skip
    grown = {who: exponent(times, {n: (who, n) for n in counts}) for who in ("cached", "uncached")}
    columns = ("tokens", *(f"{who}, {times.unit}" for who in ("cached", "uncached", "one pass")),
               "uncached / cached", "/ one pass")  # fmt: skip
    note = (
        "The documents: keys and values are computed once and reused, so a text takes linear time with a\n"
        f"cache and quadratic time without. Here: n^{grown['cached']:.2f} with it, n^{grown['uncached']:.2f} "
        "without.\nA short pass takes what its launches take, whatever it holds."
    )
    return Table("Writing a whole text, one token a pass", columns, tuple(rows), note), grown


@claim(
    "generation.cached-time-is-linear",
    needs="Transformer",
    through=ANY,
    source="whiteboard, Which mask makes it a chat model; refresher §13, What's next",
)
def test_time_grows_linearly_with_a_cache_and_faster_without(build, draw, device, receipt):
    """A text's time grows about linearly with a cache, and by a clearly higher power without one."""
    times, counts = growth_times(build, draw, device)
    table, grown = growth_table(times, counts)
    receipt(table)
    between(grown["cached"], 0.7, 1.4, "the exponent of time in tokens, with a cache")
    gap = grown["uncached"] - grown["cached"]
    if gap < 0.15:
        clear_of_launches(times, ("one pass", counts[-1]), ("one pass", counts[0]))
    at_least(gap, 0.15, "how much higher it is without one")


@claim(
    "training.one-pass-beats-n-passes",
    needs="Transformer",
    through=ANY,
    source="refresher §13; whiteboard, Which mask makes it a chat model",
)
def test_one_pass_takes_a_fraction_of_one_pass_a_token(build, draw, device):
    """Scoring every position in one pass takes a fraction of the time that one pass a prefix takes."""
    model, config = model_of(build, device)
    tokens = draw.tokens(config.n_vocab, 1, 64)
    with torch.no_grad():
        times = in_turn({"all": lambda: model(tokens), "each": lambda: recompute(model, tokens)}, device, 3)
    at_least(ratio(times, "each", "all"), 3.0, "64 passes over prefixes in passes over all 64 tokens")


# --- reading and writing --------------------------------------------------------------------------------


def phases_table(build, draw, device):
    model, config = model_of(build, device, LARGE)
    counts, calls = sized(device, (16, 64, 256), (128, 512, 2048)), {}
    cache = model.new_cache()
    one = draw.tokens(config.n_vocab, 1, 1)
    for n in counts:
        tokens = draw.tokens(config.n_vocab, 1, n)
        calls[n] = lambda tokens=tokens: model(tokens, model.new_cache())
    with torch.no_grad():
        times = in_turn({"decode": lambda: model(one, cache), **calls}, device)
    written = {n: n * ratio(times, "decode", n) for n in counts}
    rows = [(n, ms(times, n) / n, ms(times, "decode"), written[n]) for n in counts]
    note = (
        "The documents: a prompt is read in one pass and waits for arithmetic; an answer is written one\n"
        "token a pass and waits for memory, up to 153 times as long on an A100 and 295 times on an H100.\n"
        f"Here a written token takes {written[counts[-1]]:.1f} times as long as a read one."
    )
    columns = ("prompt", f"{times.unit} a token read", f"{times.unit} a token written", "written / read")
    return Table("Prefill and decode, a token", columns, tuple(rows), note), written[counts[-1]]


@claim(
    "generation.decode-takes-longer-a-token",
    needs="Transformer",
    through=ANY,
    source="refresher §6, §13; whiteboard, Which mask makes it a chat model",
)
def test_written_token_takes_longer_than_a_read_one(build, draw, device, receipt):
    """A token that is written takes at least twice as long as one that is read in a long prompt."""
    table, written = phases_table(build, draw, device)
    receipt(table)
    at_least(written, 2.0, "a written token's time in that of a read one")


# --- rows that share the weights ------------------------------------------------------------------------


def weight_bytes(config, dtype):
    return cost.matmul_parameters(config) * dtype.itemsize


def batching_table(build, draw, device, dtype):
    model, config = model_of(build, device, LARGE)
    batches, contexts = (1, 4, 16), sized(device, (8, 256), (16, 2048))
    calls, share = {}, {}
    with torch.no_grad():
        for n in contexts:
            for batch in batches:
                calls[batch, n], cache = decode_step(model, config, draw, batch, n)
                share[batch, n] = cache.nbytes / weight_bytes(config, dtype)
        times = in_turn(calls, device)
    gains = {(b, n): b * ratio(times, (1, n), (b, n)) for n in contexts for b in batches}
    rows = [
        (n, b, ms(times, (b, n)), f"{100 * share[b, n]:.0f}%", b, b * (1 + share[1, n]) / (1 + share[b, n]),
         gain)
        for (b, n), gain in gains.items()
    ]  # fmt: skip
    many = batches[-1]
    short, long = (gains[many, n] for n in contexts)
    measured = (
        f"{many} rows behind {contexts[0]} tokens yield {short:.1f} times as many tokens a second as one"
    )
    note = (
        "The documents: a batch reads each weight once for all its rows, but each row's cache for itself.\n"
        f"{here(short > many / 2, measured)}"
    )
    columns = ("context", "rows", f"step, {times.unit}", "cache / weights", "gain if weights bind (document)",
               "gain by bytes", "gain measured")  # fmt: skip
    return Table("Tokens a second against one row's", columns, tuple(rows), note), (
        config,
        contexts,
        short,
        long,
    )


@claim("serving.batching-lifts-throughput", needs="Transformer", through=ANY, source="refresher §6")
def test_batching_lifts_throughput_until_caches_dominate(impl, build, draw, device, dtype, receipt):
    """Rows decoded together yield more tokens a second, and gain less the longer their caches are."""
    table, (config, contexts, short, long) = batching_table(build, draw, device, dtype)
    receipt(table)
    judge_growing_caches_only(impl, config, dtype, *contexts)
    at_least(short, 1.5, f"16 rows' tokens a second in one's, behind {contexts[0]} tokens")
    at_most(long / short, 0.9, f"the gain behind {contexts[1]} tokens in that one")


# --- the cache's own reads --------------------------------------------------------------------------------


def context_table(build, draw, device, dtype):
    model, config = model_of(build, device, SMALL.but(n_kv_heads=4))
    counts, calls, bytes_read = sized(device, (64, 512, 2048), (512, 4096, 16384)), {}, {}
    with torch.no_grad():
        for n in counts:
            calls[n], cache = decode_step(model, config, draw, 1, n)
            bytes_read[n] = weight_bytes(config, dtype) + cache.nbytes
        half = torch.ones(cache.nbytes // 2, dtype=torch.uint8, device=device)  # copied: read, and written
        target = torch.empty_like(half)
        times = in_turn({**calls, "traffic": lambda: target.copy_(half)}, device, rounds=11)
    rows = [(n, round(bytes_read[n] / 1e6, 2), ms(times, n), bytes_read[n] / bytes_read[counts[0]],
             ratio(times, n, counts[0])) for n in counts]  # fmt: skip
    note = (
        "The documents: decode speed is governed by the bytes read a token, and each new token reads all\n"
        "earlier ones. A cache that is copied in order to grow moves its bytes three times.\n"
        "To move as many bytes as the longest cache holds takes "
        f"{ratio(times, 'traffic', counts[0]):.2f} of the shortest step's time."
    )
    columns = ("context", "MB read", f"step, {times.unit}", "times the shortest (document)", "measured")
    return Table("A decode step behind ever longer contexts", columns, tuple(rows), note), (
        config,
        counts,
        times,
    )


@claim(
    "generation.step-time-grows-with-the-context",
    needs="Transformer",
    through=ANY,
    source="whiteboard, One block, Which mask makes it a chat model; refresher §6",
)
def test_step_slows_down_behind_a_longer_context(impl, build, draw, device, dtype, receipt):
    """A decode step takes longer behind a long context than behind a short one."""
    table, (config, counts, times) = context_table(build, draw, device, dtype)
    receipt(table)
    judge_growing_caches_only(impl, config, dtype, counts[0], counts[-1])
    slower = ratio(times, counts[-1], counts[0])
    if slower < 1.2:
        clear_of_launches(times, "traffic", counts[0], 0.4)
    at_least(slower, 1.2, "the step behind the longest context in that behind the shortest")


def sharing_table(build, draw, device, dtype):
    calls, found = {}, {}
    base, n = sized(device, SMALL.but(n_heads=8, d_head=32), ELSEWHERE), sized(device, 1024, 8192)
    with torch.no_grad():
        for n_kv_heads in (base.n_heads, base.n_heads // 4, 1):
            config = base.but(n_kv_heads=n_kv_heads)
            calls[n_kv_heads], cache = decode_step(build(config), config, draw, 1, n)
            found[n_kv_heads] = cache.nbytes, weight_bytes(config, dtype) + cache.nbytes
        times = in_turn(calls, device, rounds=11)
    full = base.n_heads
    smaller, less = found[full][0] / found[1][0], ratio(times, full, 1)
    rows = [(h, full / h, found[full][0] / found[h][0], found[full][1] / found[h][1],
             ratio(times, full, h)) for h in found]  # fmt: skip
    measured = f"a step with {full} key/value heads takes {less:.2f} times as long as with one"
    note = (
        "The documents: sharing key/value heads gains cache memory and decode bandwidth, at a speed near\n"
        "that of one shared head. Code that repeats heads before it multiplies still moves all the bytes.\n"
        f"{here(less > 1.05, measured)}"
    )
    columns = ("kv heads", "cache smaller (document)", "measured", "fewer bytes read", "less time")
    title = f"Times less than with {full} key/value heads, in a decode step behind {n} tokens"
    return Table(title, columns, tuple(rows), note), (full, smaller, less)


@claim("gqa.sharing-against-the-clock", needs="Transformer", through=ANY, source="whiteboard, The KV cache")
def test_sharing_heads_makes_a_step_no_slower(build, draw, device, dtype, receipt):
    """One key/value head for all caches as many times less, and makes a decode step no slower."""
    table, (full, smaller, less) = sharing_table(build, draw, device, dtype)
    receipt(table)
    same(smaller, float(full), "how many times smaller the cache is")
    at_least(less, 0.7, "the step with full heads in that with one")
