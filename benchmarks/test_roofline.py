"""The roofline: passes of a model under the two ceilings of the machine that they run on.

time >= max(bytes / bandwidth, FLOPs / throughput): the refresher takes both ceilings from data sheets, here
they are measured by one large copy and one large matrix product, in the same turns as the passes.
"""

import torch

from benchmarks.clock import in_turn, ratio, sized
from benchmarks.test_generation import ANY, ELSEWHERE, LARGE, decode_step
from harness import Table, at_least, claim, measure

DECODE = "decode"
BEFORE = 16  # tokens in the cache before a decode step; a prompt begins with an empty one


def passes(device):
    """name -> rows, tokens in a row"""
    batch, prompt = sized(device, 16, 64), sized(device, 256, 2048)
    return {DECODE: (1, 1), f"decode, {batch} rows": (batch, 1), "prompt of 16": (1, 16),
            f"prompt of {prompt}": (1, prompt)}  # fmt: skip


def counted(impl, config, dtype, batch, n):
    """FLOPs of a pass, and the bytes of weights and cache that it reads, counted on meta."""
    model = impl.Transformer(config, device="meta", dtype=dtype)
    before, tokens = (torch.zeros(batch, m, dtype=torch.int64, device="meta") for m in (BEFORE, n))
    cache, read = model.new_cache(), []
    with torch.no_grad():
        if n == 1:
            model(before, cache)
        flops = measure.flops(lambda: read.append(measure.reads(lambda: model(tokens, cache), model)))
    return flops, read[0] + cache.nbytes


def ceilings(draw, device):
    """One large matrix product and one large copy: what each does, and how much of it."""
    n, m = sized(device, 1024, 4096), sized(device, 2**26, 2**27)
    a, b, source = draw(n, n), draw(n, n), draw.place(torch.zeros(m))
    target = torch.empty_like(source)
    return {"product": lambda: a @ b, "copy": lambda: target.copy_(source)}, 2 * n**3, 2 * source.nbytes


def roofline_table(impl, build, draw, device, dtype):
    config = sized(device, LARGE, ELSEWHERE)
    model, (calls, flops, moved), counts = build(config), ceilings(draw, device), {}
    with torch.no_grad():
        for name, (batch, n) in passes(device).items():
            counts[name] = counted(impl, config, dtype, batch, n)
            if n == 1:
                calls[name], _ = decode_step(model, config, draw, batch, BEFORE)
            else:
                tokens = draw.tokens(config.n_vocab, batch, n)
                calls[name] = lambda tokens=tokens: model(tokens, model.new_cache())
        times = in_turn(calls, device)
    compute, bandwidth = flops / min(times["product"]), moved / min(times["copy"])
    rows = []
    for name, (work, read) in counts.items():
        attainable = min(compute, work / read * bandwidth)
        measured = compute * work / flops * ratio(times, "product", name)
        binds = "memory" if work / read * bandwidth < compute else "compute"
        rows.append((name, work / 1e9, read / 1e6, work / read, binds, attainable / 1e9, measured / 1e9,
                     f"{100 * measured / attainable:.0f}%"))  # fmt: skip
    note = (
        f"Ceilings measured here: {compute / 1e9:.1f} GFLOP/s and {bandwidth / 1e9:.1f} GB/s, a ridge "
        f"at {compute / bandwidth:.1f} FLOP/byte;\nthe refresher's are at 153 on an A100 and 295 on an H100. "
        "The floor assumes perfect overlap, and no time between kernels."
    )
    columns = ("pass", "GFLOPs", "MB read", "FLOP/byte", "waits for", "attainable", "measured", "share")
    (work, read), (long_work, long_read) = counts[DECODE], counts[name]
    denser, faster = long_work / long_read / (work / read), long_work / work * ratio(times, DECODE, name)
    return Table("Under the roofline", columns, tuple(rows), note), (denser, faster)


@claim(
    "serving.roofline-measured",
    needs="Transformer",
    through=ANY,
    source="refresher §6; whiteboard, Which mask makes it a chat model",
)
def test_long_prompt_computes_faster_than_a_decode_step(impl, build, draw, device, dtype, receipt):
    """A long prompt does more FLOPs for each byte it reads than a decode step, and more in each second."""
    table, (denser, faster) = roofline_table(impl, build, draw, device, dtype)
    receipt(table)
    at_least(denser, 8.0, "a long prompt's FLOPs a byte in those of a decode step")
    at_least(faster, 1.5, "a long prompt's FLOPs a second in those of a decode step")
