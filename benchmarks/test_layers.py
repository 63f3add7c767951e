"""Layers against the clock: a norm with a mean and one without, and what training adds to a forward pass."""

import torch
import torch.nn.functional as F

import refimpl
from benchmarks.clock import here, in_turn, ms, ratio, sized
from benchmarks.test_generation import ANY
from harness import Table, at_most, between, claim
from refimpl import ModelConfig

# --- norms ------------------------------------------------------------------------------------------------


def plain_layer_norm(x, gain, bias):
    """LayerNorm written as refimpl writes RMSNorm: a mean more, and a bias."""
    centred = x - x.mean(dim=-1, keepdim=True)
    return centred * torch.rsqrt(centred.square().mean(dim=-1, keepdim=True) + 1e-6) * gain + bias


def norms_table(draw, device):
    widths, n = (512, 1024, 4096), sized(device, 512, 16384)
    calls = {}
    for d in widths:
        x, gain, bias = draw(n, d), draw.gains(d), draw(d)
        calls |= {
            ("LayerNorm", d): lambda x=x, g=gain, b=bias: plain_layer_norm(x, g, b),
            ("RMSNorm", d): lambda x=x, g=gain: refimpl.rms_norm(x, g),
            ("fused LayerNorm", d): lambda x=x, g=gain, b=bias: F.layer_norm(x, x.shape[-1:], g, b),
            ("fused RMSNorm", d): lambda x=x, g=gain: F.rms_norm(x, x.shape[-1:], g),
        }
    with torch.no_grad():
        times = in_turn(calls, device, rounds=15)
    pairs = {"plain": ("RMSNorm", "LayerNorm"), "PyTorch's own": ("fused RMSNorm", "fused LayerNorm")}
    shares = {what: [ratio(times, (a, d), (b, d)) for d in widths] for what, (a, b) in pairs.items()}
    rows = [
        (what, d, ms(times, (a, d)), ms(times, (b, d)), "7% to 64% less", less(share))
        for what, (a, b) in pairs.items()
        for d, share in zip(widths, shares[what], strict=True)
    ]
    own = shares["PyTorch's own"]
    measured = f"PyTorch's own RMSNorm takes {min(own):.2f} to {max(own):.2f} times as long as its LayerNorm"
    note = (
        "The refresher: without the mean a pass over the data is saved; its source reports 7% to 64% less\n"
        "running time, of whole models. Of two kernels the better written one wins, whatever it computes.\n"
        f"{here(max(own) < 1, measured)}"
    )
    columns = ("norms", "width", f"RMSNorm, {times.unit}", f"LayerNorm, {times.unit}", "document", "measured")
    return Table("RMSNorm against LayerNorm", columns, tuple(rows), note), shares["plain"]


def less(share):
    return f"{100 * (1 - share):.0f}% less" if share <= 1 else f"{share:.2f} times as long"


@claim("norm.dropping-the-mean-saves-time", needs=None, per="device", source="refresher §8, References")
def test_plain_rms_norm_takes_less_time_than_plain_layer_norm(draw, device, receipt):
    """Written alike, RMSNorm takes less time than LayerNorm."""
    table, plain = norms_table(draw, device)
    receipt(table)
    at_most(min(plain), 0.95, "RMSNorm's time in LayerNorm's, both written out")


# --- training ---------------------------------------------------------------------------------------------

BLOCKS = ModelConfig(n_vocab=64, d_model=256, n_layers=4, n_heads=4, n_kv_heads=4, d_head=64, d_ff=704)


def training_calls(build, draw, device):
    """A forward pass, the same with its backward, and the same with everything in between computed twice."""
    from torch.utils.checkpoint import checkpoint, set_checkpoint_early_stop

    config = sized(device, BLOCKS, BLOCKS.but(d_model=2048, n_heads=16, n_kv_heads=16, d_head=128, d_ff=5504))
    model = build(config)
    tokens = draw.tokens(config.n_vocab, 1, sized(device, 256, 1024))

    def inference():
        with torch.no_grad():
            model(tokens)

    def training():
        model(tokens).sum().backward()

    def checkpointed():
        with set_checkpoint_early_stop(False):
            checkpoint(model, tokens, use_reentrant=False, preserve_rng_state=False).sum().backward()

    forward = lambda: model(tokens)  # noqa: E731 (as short as the others are)
    return {"inference": inference, "forward": forward, "training": training, "twice": checkpointed}


def training_table(build, draw, device):
    times = in_turn(training_calls(build, draw, device), device, rounds=11)
    whole, again = ratio(times, "training", "inference"), ratio(times, "twice", "training")
    backward = [t - f for t, f in zip(times["training"], times["forward"], strict=True)]
    times["backward"] = backward
    rows = (
        ("backward in forward passes", "about 2", ratio(times, "backward", "forward")),
        ("training in inference passes", "3", whole),
        ("checkpointed training in training passes", "roughly 1.3", again),
    )
    note = (
        "The document counts matrix products. All blocks are one checkpoint here, whose forward runs twice;\n"
        "the optimizer's step is left out on both sides."
    )
    title = "What training adds to a pass, in time"
    return Table(title, ("what", "document", "measured"), rows, note), (whole, again)


@claim("training.takes-about-three-passes", needs="Transformer", gradients=True,
       through=ANY, source="refresher §6")  # fmt: skip
def test_training_takes_about_three_passes_and_checkpointing_a_third_more(build, draw, device, receipt):
    """Training takes some three times as long as inference, and up to two thirds more if checkpointed."""
    table, (whole, again) = training_table(build, draw, device)
    receipt(table)
    between(whole, 1.8, 5.0, "forward and backward in inference passes")
    between(again, 1.08, 1.67, "with everything computed twice, in training passes")
