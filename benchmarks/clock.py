"""One clock for all statements about time: calls taken in turn, so that what slows one slows all.

pytest-benchmark's fixture times one call to its end and then the next, and a ratio of the two has in it
whatever changed in between: the processor's clock, a neighbour, a warmed cache. Here the calls of one
comparison alternate, and a ratio is the median over rounds, each of which sets side by side what ran side by
side.
"""

import math
from collections.abc import Callable, Hashable, Mapping
from statistics import linear_regression, median
from time import perf_counter, process_time
from typing import Any

import torch

Times = dict[Any, list[float]]


def seconds(call: Callable[[], Any], device: str) -> float:
    """One call, all its work on the device included; on CUDA by the device's own events.

    On the CPU it is the process's own CPU time, which a busy machine does not stretch as it does the wall's.
    """
    synchronize(device)
    if device == "cuda":
        start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        start.record()
        call()
        end.record()
        torch.cuda.synchronize()
        return start.elapsed_time(end) / 1e3
    now = process_time if device == "cpu" else perf_counter
    began = now()
    call()
    synchronize(device)
    return now() - began


def synchronize(device: str) -> None:
    if device in ("cuda", "mps"):
        getattr(torch, device).synchronize()


def in_turn(
    calls: Mapping[Hashable, Callable[[], Any]], device: str, rounds: int = 7, warm_up: int = 1
) -> Times:
    """name -> its seconds in each round. A round makes every call once; the first ones are thrown away."""
    times: Times = {name: [] for name in calls}
    for turn in range(-warm_up, rounds):
        for name, call in calls.items():
            found = seconds(call, device)
            if turn >= 0:
                times[name].append(found)
    return times


def ratio(times: Times, a: Hashable, b: Hashable) -> float:
    """How many times as long a takes as b: the median over the rounds."""
    return median(x / y for x, y in zip(times[a], times[b], strict=True))


def ms(times: Times, name: Hashable) -> float:
    """The median, in milliseconds: to be printed, never to be asserted."""
    return 1e3 * median(times[name])


def exponent(times: Times, names: Mapping[int, Hashable]) -> float:
    """p where time grows as n^p: the slope over the given lengths, n -> its name, on logarithmic axes.

    Of each length the fastest round counts: a disturbance only ever adds, and adds most to short calls.
    """
    slope, _ = linear_regression(
        [math.log(n) for n in names], [math.log(min(times[name])) for name in names.values()]
    )
    return slope


def sized(device: str, on_cpu: Any, elsewhere: Any) -> Any:
    """A size that takes milliseconds: accelerators need larger ones before anything but launching counts."""
    return on_cpu if device == "cpu" else elsewhere
