"""One clock for all statements about time: calls taken in turn, so that what slows one slows all.

pytest-benchmark's fixture times one call to its end and then the next, and a ratio of the two has in it
whatever changed in between: the processor's clock, a neighbour, a warmed cache. Here the calls of one
comparison alternate, and a ratio is the median over rounds, each of which sets side by side what ran side by
side.
"""

import math
import sys
from collections.abc import Callable, Hashable, Mapping
from statistics import linear_regression, median
from time import perf_counter, process_time
from typing import Any

import torch


class Times(dict[Any, list[float]]):
    """name -> its seconds in each round. unit: what a column of them is called."""

    unit = "ms"


def seconds(call: Callable[[], Any], device: str) -> tuple[float, float]:
    """One call, all its work on the device included: by the clock, on CUDA the device's own; and of this
    process's CPU."""
    synchronize(device)
    wall, cpu = perf_counter(), process_time()
    if device == "cuda":
        start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        start.record()
        call()
        end.record()
        torch.cuda.synchronize()
        return start.elapsed_time(end) / 1e3, process_time() - cpu
    call()
    synchronize(device)
    return perf_counter() - wall, process_time() - cpu


def synchronize(device: str) -> None:
    if device in ("cuda", "mps"):
        getattr(torch, device).synchronize()


def in_turn(
    calls: Mapping[Hashable, Callable[[], Any]], device: str, rounds: int = 7, warm_up: int = 1
) -> Times:
    """name -> its seconds in each round. A round makes every call once; the first ones are thrown away.

    On the CPU they are of CPU time, which a busy machine does not stretch as it does the wall's, unless that
    does not tell: for all calls of a comparison, or for none.
    """
    wall, cpu = (Times((name, []) for name in calls) for _ in range(2))
    for turn in range(-warm_up, rounds):
        for name, call in calls.items():
            found = seconds(call, device)
            if turn >= 0:
                wall[name].append(max(found[0], 1e-9))  # a clock that has not ticked divides nothing by zero
                cpu[name].append(found[1])
    if device == "cpu" and all(tells(cpu[name], wall[name]) for name in calls):
        cpu.unit = "CPU ms"
        return cpu
    return wall


def tells(cpu: list[float], wall: list[float]) -> bool:
    """Whether CPU time is of the size of the wall's, as on a busy machine, where it may be a few times less.

    Threads that work or wait at once add up to more, work in another process or on another device is not
    seen at all, and Windows counts in steps of 16 ms.
    """
    share = median(c / w for c, w in zip(cpu, wall, strict=True))
    return sys.platform != "win32" and min(cpu) > 0 and 0.1 <= share <= 2


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
    """A size that takes milliseconds: accelerators need larger ones before anything but launching counts.

    Those fit beside weights and caches into some 4 GB, which a small card or a laptop has: refimpl's
    attention holds two grids of scores at a time.
    """
    return on_cpu if device == "cpu" else elsewhere


def clear_of_launches(times: Times, a: Hashable, b: Hashable, least: float = 3.0) -> None:
    """Raise "not offered" unless a, which has more to do, takes `least` times as long as b: otherwise the
    work drowns in what a call takes whatever it holds, and its growth cannot be judged."""
    if ratio(times, a, b) < least:
        raise NotImplementedError("not offered: launches take all the time at these sizes")


def here(holds: bool, measured: str) -> str:
    """What was measured, for a note beside the documents' statement, and in words that it is otherwise."""
    return f"Here {'' if holds else 'it does not hold: '}{measured}."
