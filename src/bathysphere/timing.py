"""How long things take on a free machine, as well as can be told on a busy one."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from typing import TypeVar

Result = TypeVar("Result")

_WAITING = 10.0  # times its processor time that something takes which waits for others
_LEAST = 1e-9  # seconds: clocks have steps, and what is short may take none
_USUAL = 40e-6  # seconds that `_work` takes on the machine on which settings were found


def timed(work: Callable[[], Result]) -> tuple[Result, float]:
    """Returns what `work` returns, and the seconds that it takes.

    Other programs lengthen what the clock shows, but not what the processor worked, which therefore counts. Something
    that waits for another process or a device works little meanwhile: it gives the processor away by itself, and then
    the clock counts.
    """
    waits, processor, clock = _num_waits(), time.process_time(), time.perf_counter()
    result = work()
    clock, processor = time.perf_counter() - clock, time.process_time() - processor
    return result, max(clock if clock > _WAITING * processor and _num_waits() > waits else processor, _LEAST)


def slowness() -> float:
    """Returns how many times as long as usual this machine takes for the same work, now."""
    return timed(_work)[1] / _USUAL


def _work() -> int:
    number = 1
    for k in range(1000):
        number = (number * 5 + k) % 1013
    return number


if sys.platform == "win32":

    def _num_waits() -> float:
        """Returns another number every time: here nothing tells whether something waits."""
        return time.perf_counter()

else:
    import resource

    def _num_waits() -> float:
        """Returns how often this thread has given the processor away by itself."""
        return resource.getrusage(getattr(resource, "RUSAGE_THREAD", resource.RUSAGE_SELF)).ru_nvcsw
