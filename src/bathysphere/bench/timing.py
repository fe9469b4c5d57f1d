"""Timing calls, and the slow Python twins that are timed beside the package."""

from __future__ import annotations

import importlib.util
import statistics
import time
from collections.abc import Callable
from pathlib import Path
from types import ModuleType

import bathysphere

TWINS = Path(bathysphere.__file__).parents[2] / "tests" / "oracles"  # in a source checkout; a wheel has none


def seconds(call: Callable[[], object], count: int = 1) -> float:
    """Returns how long `count` calls take, one after the other."""
    start = time.perf_counter()
    for _ in range(count):
        call()
    return time.perf_counter() - start


def rate(call: Callable[[], object], repeats: int) -> float:
    """Returns calls per second: the median over repeats of at least a tenth of a second each."""
    call()  # compiles
    count = 1
    while seconds(call, count) < 0.1:
        count *= 2
    return count / statistics.median(seconds(call, count) for _ in range(repeats))


def load_twin(name: str) -> ModuleType | None:
    """Loads `tests/oracles/NAME.py`; None if there is no such file.

    Twins are test code, so the package neither contains nor imports them; the benchmark is the one exception.
    """
    path = TWINS / f"{name.replace('-', '_')}.py"
    if not path.is_file():
        return None
    spec = importlib.util.spec_from_file_location(f"bathysphere_oracle_{path.stem}", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module
