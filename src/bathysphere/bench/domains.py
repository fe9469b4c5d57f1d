"""Successor states per second of every registered domain, and Sokoban levels generated per second."""

from __future__ import annotations

import statistics
from dataclasses import MISSING, fields
from itertools import cycle
from typing import Any

import numpy as np

from bathysphere.bench.timing import load_twin, rate, seconds
from bathysphere.domains import domain_names, find_domain, make_domain
from bathysphere.domains.base import Domain
from bathysphere.domains.sokoban import GeneratorConfig, generate
from bathysphere.testing import walk

SETTINGS: dict[str, dict[str, Any]] = {"deep-sea": {"size": 40}}  # where they are not the defaults
REPEATS = 5
BATCH = 1024  # states per call
TWIN_BATCH = 64  # states that the twin gets one by one
LEVELS = 20  # levels per repeat


def bench_domains() -> dict[str, Any]:
    """Measures the domains that need no settings, each beside its Python twin if there is one."""
    rng = np.random.default_rng(0)
    fast, slow = {}, {}
    for name in domain_names():
        domain = _make(name)
        if domain is None:
            continue
        states = walk(domain, rng, BATCH)[:BATCH]
        per_call = len(states) * len(domain.action_names)
        fast[name] = per_call * rate(lambda d=domain, s=states: d.successors(s), REPEATS)  # type: ignore[misc]
        twin = load_twin(name)
        if twin is not None:
            calls = cycle(twin.successor_calls(domain, states[:TWIN_BATCH]))
            slow[name] = rate(lambda calls=calls: next(calls)(), REPEATS)  # type: ignore[misc]
    seeds = iter(range(1, 1 + REPEATS))
    generate(1)  # compiles
    levels = [seconds(lambda: generate(LEVELS, GeneratorConfig(), next(seeds))) for _ in range(REPEATS)]
    return {
        "successors_per_second": fast,
        "sokoban_levels_per_second": LEVELS / statistics.median(levels),
        "oracle_successors_per_second": slow,
    }


def describe(result: dict[str, Any]) -> str:
    """Returns the result as lines for people."""
    fast, slow = result["successors_per_second"], result["oracle_successors_per_second"]
    lines = ["successor states per second, one core:"]
    for name, speed in fast.items():
        twin = f"  Python twin {slow[name]:>10,.0f}  x{speed / slow[name]:,.0f}" if name in slow else ""
        lines.append(f"  {name:<14} {speed:>14,.0f}{twin}")
    lines.append(f"Sokoban levels per second (10x10, 4 boxes): {result['sokoban_levels_per_second']:.1f}")
    if not slow:
        lines.append("The Python twins come with the source checkout only, so they were not measured.")
    if left_out := [name for name in domain_names() if name not in fast]:
        lines.append(f"Not measured, because their settings have no defaults: {', '.join(left_out)}.")
    return "\n".join(lines)


def _make(name: str) -> Domain | None:
    """Makes a domain with the settings above, or its defaults; None if it has settings without default."""
    config: Any = find_domain(name).Config
    given = SETTINGS.get(name, {})
    needed = [f.name for f in fields(config) if f.init and f.default is MISSING and f.default_factory is MISSING]
    return make_domain(config(**given)) if set(needed) <= set(given) else None
