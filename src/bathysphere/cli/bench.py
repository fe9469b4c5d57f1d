"""`bathysphere bench`: how fast the parts are on this machine, one core, median of several."""

from __future__ import annotations

import importlib.util
import statistics
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import cycle
from pathlib import Path
from typing import Any, Literal

import numpy as np
import tyro

import bathysphere
from bathysphere.cli.common import parse, say
from bathysphere.domains import DeepSea, Sokoban, ToyMontezuma, domain_names, find_domain, make_domain
from bathysphere.domains.sokoban import GeneratorConfig, generate
from bathysphere.testing import walk

_DESCRIPTION = """Measure speed on one core, median of several.

domains: successor states per second of each world (Deep-sea 40, Toy Montezuma full, Sokoban 10x10 with 4
boxes) and of the slow Python twins they are tested against, and Sokoban levels generated per second. The
twins are part of the tests, so they are measured only in a source checkout.

planner: real steps per second at 10 passes per step on each world with the paper's settings, on one core and
on two, beside the plain-Python planner it is tested against.

sokoban: real steps per second of training on fresh boards, with learning, on one core and on two; states per second
of the network alone, with batches of the same size; and which part of the time goes where.

Examples:

bathysphere bench domains

bathysphere bench planner

bathysphere bench sokoban --preset paper/sokoban

bathysphere bench domains --json
"""

_SETTINGS: dict[str, dict[str, Any]] = {"deep-sea": {"size": 40}}
_REPEATS = 5
_BATCH = 1024  # states per call
_LEVELS = 20  # levels per repeat


@dataclass(frozen=True)
class Options:
    """Options of `bathysphere bench`."""

    topic: tyro.conf.Positional[Literal["domains", "planner", "sokoban"]]
    """What to measure."""
    preset: str | None = None
    """sokoban: measure this preset only, instead of paper/sokoban and sokoban."""
    agent: str | None = None
    """sokoban: measure how this agent would be trained on, instead of a preset from its beginning."""
    json: bool = False
    """Print one JSON object on stdout, and nothing else."""


def run(argv: list[str]) -> int:
    """Runs `bathysphere bench <argv>` and returns the exit code."""
    options = parse(Options, argv, "bench", _DESCRIPTION)
    if options.topic == "planner":
        # The planner's measurement needs PyTorch, which the worlds do not.
        from bathysphere.cli.bench_planner import bench_planner, describe

        result = bench_planner()
        say(result, describe(result), options.json)
        return 0
    if options.topic == "sokoban":
        from bathysphere.cli import bench_sokoban

        result = bench_sokoban.bench_sokoban(options.preset, options.agent)
        say(result, bench_sokoban.describe(result), options.json)
        return 0
    result = bench_domains()
    fast, slow = result["successors_per_second"], result["oracle_successors_per_second"]
    lines = ["successor states per second, one core:"]
    for name, speed in fast.items():
        twin = f"  Python twin {slow[name]:>10,.0f}  x{speed / slow[name]:,.0f}" if name in slow else ""
        lines.append(f"  {name:<14} {speed:>14,.0f}{twin}")
    lines.append(f"Sokoban levels per second (10x10, 4 boxes): {result['sokoban_levels_per_second']:.1f}")
    if not slow:
        lines.append("The Python twins come with the source checkout only, so they were not measured.")
    say(result, "\n".join(lines), options.json)
    return 0


def bench_domains() -> dict[str, Any]:
    """Measures the worlds; see the verb's description."""
    rng = np.random.default_rng(0)
    domains = [make_domain(find_domain(name).Config(**_SETTINGS.get(name, {}))) for name in domain_names()]
    oracles = _oracles()
    fast, slow = {}, {}
    for domain in domains:
        states = walk(domain, rng, _BATCH)[:_BATCH]
        per_call = len(states) * len(domain.action_names)
        fast[domain.name] = per_call * _rate(lambda d=domain, s=states: d.successors(s))  # type: ignore[misc]
        if oracles is not None:
            steps = _oracle_steps(domain, oracles[domain.name], states[:64])
            slow[domain.name] = _rate(lambda steps=steps: next(steps)())  # type: ignore[misc]
    seeds = iter(range(1, 1 + _REPEATS))
    generate(1)  # compiles
    levels = [_seconds(lambda: generate(_LEVELS, GeneratorConfig(), next(seeds))) for _ in range(_REPEATS)]
    return {
        "successors_per_second": fast,
        "sokoban_levels_per_second": _LEVELS / statistics.median(levels),
        "oracle_successors_per_second": slow,
    }


def _rate(call: Callable[[], object]) -> float:
    """Returns calls per second: the median over repeats of at least a tenth of a second each."""
    call()  # compiles
    count = 1
    while _seconds(call, count) < 0.1:
        count *= 2
    return count / statistics.median(_seconds(call, count) for _ in range(_REPEATS))


def _seconds(call: Callable[[], object], count: int = 1) -> float:
    start = time.perf_counter()
    for _ in range(count):
        call()
    return time.perf_counter() - start


def _oracles() -> dict[str, Any] | None:
    """Loads the slow twins from `tests/oracles` beside `src`. None if this is not a source checkout.

    They are test code, so the package neither contains nor imports them; the benchmark is the one exception.
    """
    folder = Path(bathysphere.__file__).parents[2] / "tests" / "oracles"
    if not folder.is_dir():
        return None
    modules = {}
    for name in domain_names():
        path = folder / f"{name.replace('-', '_')}.py"
        spec = importlib.util.spec_from_file_location(f"bathysphere_oracle_{path.stem}", path)
        assert spec is not None
        assert spec.loader is not None
        modules[name] = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(modules[name])
    return modules


def _oracle_steps(domain: Any, oracle: Any, states: np.ndarray[Any, Any]) -> Iterator[Callable[[], object]]:
    """Returns, forever, calls that each compute one successor of one of `states` with the twin."""
    match domain:
        case Sokoban():
            pay = domain.config.rewards
            prices = (pay.step, pay.box_on_target, pay.box_off_target, pay.finished)
            boards = [domain.text(state).split("\n") for state in states]
            calls = [lambda b=b, m=m: oracle.successor(b, m, *prices) for b in boards for m in oracle.WALKS]
        case DeepSea() | ToyMontezuma():
            if isinstance(domain, DeepSea):
                twin = oracle.DeepSeaOracle(domain.config.size)
            else:
                twin = oracle.ToyMontezumaOracle(Path(domain.world.source).read_text(encoding="utf-8"))
            rows = [state.tobytes() for state in states]
            calls = [lambda r=r, a=a: twin.step(r, a) for r in rows for a in range(twin.num_actions)]
        case _:
            raise AssertionError(f"no twin of {domain.name} is known")
    return cycle(calls)
