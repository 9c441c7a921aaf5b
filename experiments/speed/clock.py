"""Timing: the best of several calls.

Ratios compare CPU time of this process (one thread), because other programs on the machine then disturb
least; what runs on several cores is timed by the wall clock.
"""

import time
from typing import Any, NamedTuple


class Timing(NamedTuple):
    """Least CPU and wall-clock seconds of several calls, and what the last one returned."""

    cpu: float
    wall: float
    result: Any


def best(call, repeats=5, warm_up=True):
    """Time a call; the first, which may compile kernels, does not count unless ``warm_up`` is False."""
    return in_turns([call], repeats, warm_up)[0]


def in_turns(calls, repeats=5, warm_up=True):
    """Time several calls that will be compared, one after the other, so that a busy moment meets them all."""
    if warm_up:
        for call in calls:
            call()
    found = [([], [], []) for _ in calls]
    for _ in range(repeats):
        for call, (cpu, wall, results) in zip(calls, found, strict=True):
            began = time.process_time(), time.perf_counter()
            results[:] = [call()]
            cpu.append(time.process_time() - began[0])
            wall.append(time.perf_counter() - began[1])
    return [Timing(min(cpu), min(wall), results[0]) for cpu, wall, results in found]
