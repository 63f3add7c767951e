"""Each offered name at one realistic size, by pytest-benchmark: statistics, and comparison with earlier runs.

Nothing is judged here. Implementations stand beside each other in a group a name; to see whether a kernel has
become slower, save a run with --benchmark-json or --benchmark-autosave and give it to --benchmark-compare.
"""

import torch

from benchmarks.clock import sized, synchronize
from harness import Draw
from refimpl import ModelConfig

MODEL = ModelConfig(n_vocab=256, d_model=256, n_layers=2, n_heads=8, n_kv_heads=2, d_head=32, d_ff=704)


def arguments(name, draw, n):
    """Inputs of some hundred thousand numbers on the CPU, of some millions elsewhere; and the options that a
    claim passes explicitly."""
    if name == "attention":
        return (draw(1, 8, n, 64), draw(1, 2, n, 64), draw(1, 2, n, 64)), {"causal": True, "scale": 0.125}
    if name == "rope":
        return (draw(1, 8, n, 64), torch.arange(n, device=draw.device)), {"base": 10000.0}
    if name == "rms_norm":
        return (draw(n, 1024), draw.gains(1024)), {"eps": 1e-6}
    matrices = [draw(a, b) / a**0.5 for a, b in ((512, 1408), (512, 1408), (1408, 512))]
    return (draw(n, 512), *matrices), {}


def call_of(name, offered, device, dtype):
    draw, n = Draw(f"benchmarks {name}", 0, device, dtype), sized(device, 256, 4096)
    if name == "Transformer":
        model, tokens = offered(MODEL, device=device, dtype=dtype), draw.tokens(MODEL.n_vocab, 1, n)
        model.load_state_dict(draw.weights(MODEL))
        return lambda: model(tokens)
    args, options = arguments(name, draw, n)
    return lambda: offered(*args, **options)


def test_call(benchmark, timed):
    name, offered, device, dtype = timed
    call = call_of(name, offered, device, dtype)
    benchmark.group = f"{name} on {device} {str(dtype).removeprefix('torch.')}"

    def finished():
        call()
        synchronize(device)

    with torch.no_grad():
        benchmark.pedantic(finished, rounds=20, warmup_rounds=2)
