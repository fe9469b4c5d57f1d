"""The planner's part of `bathysphere bench`: real steps per second, against its plain-Python twin."""

from __future__ import annotations

import importlib.util
import os
import statistics
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

import bathysphere
from bathysphere.cli.planner_shares import shares
from bathysphere.domains import DeepSea, DeepSeaConfig, Domain, SokobanConfig, ToyMontezuma, make_domain
from bathysphere.planning import Search, SearchConfig, Values
from bathysphere.planning.pace import Pace
from bathysphere.planning.pool import Crew
from bathysphere.values import Ensemble, OptimiserConfig, ValuesConfig

REPEATS = 5
WINDOW = 2.0  # seconds per repeat, at whose end lanes wait for each other: rather often, for `Crew.play` does so once
ORACLE_SECONDS = 1.0


class StubValues:
    """Three members that cost next to nothing, so that the search itself is measured: a random projection."""

    num_members = 3

    def __init__(self, num_features: int) -> None:
        rng = np.random.default_rng(0)
        self._weights = rng.normal(scale=0.1, size=(num_features, self.num_members)).astype(np.float32)

    def evaluate(self, observations: NDArray[np.generic]) -> NDArray[np.float32]:
        """Returns float32 [n, 3]."""
        return observations.reshape(len(observations), -1).astype(np.float32) @ self._weights


@dataclass(frozen=True)
class Work:
    """One thing to plan: a world, its values, the paper's settings, and a batch that suits it."""

    name: str
    domain: Domain
    values: Values
    config: SearchConfig
    batch: int


def deep_sea(batch: int = 128) -> Work:
    """Returns the paper's Deep-sea: 20 linear members, of which 10 rank actions."""
    domain = DeepSea(DeepSeaConfig(size=40))
    values = Ensemble(ValuesConfig("linear", bias=False), OptimiserConfig(), domain.observation, seed=0)
    config = SearchConfig(risk_coef=50.0, num_subsampled=10, avoid_loops=False)
    return Work("deep-sea", domain, values, config, batch)


def toy_montezuma(batch: int = 512) -> Work:
    """Returns the paper's Toy Montezuma: 24 rooms, 20 networks 15-50-50-1."""
    domain = ToyMontezuma()
    values = Ensemble(ValuesConfig("mlp", hidden=(50, 50)), OptimiserConfig(), domain.observation, seed=0)
    config = SearchConfig(risk_coef=3.0, num_subsampled=10, episode_penalty=0.2)
    return Work("toy-montezuma", domain, values, config, batch)


def sokoban(batch: int = 512) -> Work:
    """Returns the paper's multi-board Sokoban with three voting members, but without their network."""
    domain = make_domain(SokobanConfig(num_boards=20))
    config = SearchConfig(risk="vote", final_ties="random", episode_penalty=2.0, dead_end_value=-2.0)
    return Work("sokoban", domain, StubValues(domain.state_size), config, batch)


WORKS: tuple[Callable[..., Work], ...] = (deep_sea, toy_montezuma, sokoban)


def bench_planner() -> dict[str, Any]:
    """Measures every work on one core and, if there is a second, on two. See the verb's description."""
    import torch

    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        rows = []
        for make in WORKS:
            work = make()
            slow = oracle_speed(work)
            all_cores = (1, 2) if (os.cpu_count() or 1) > 1 else (1,)
            for cores, (fast, crew) in zip(all_cores, speeds(work, all_cores), strict=True):
                rows.append(_row(work, cores, slow, fast, crew))
        return {"rows": rows}
    finally:
        torch.set_num_threads(threads)


def describe(result: dict[str, Any]) -> str:
    """Returns the result as lines for people."""
    lines = [f"{'work':<14} {'cores':>5} {'batch':>6} {'steps/s':>10} {'twin':>7} {'ratio':>8}  share of time"]
    for row in result["rows"]:
        slow, ratio = row["oracle_env_steps_per_second"], row["ratio"]
        twin = "-" if slow is None else f"{slow:,.0f}"
        times = "-" if ratio is None else f"{ratio:,.0f}x"
        shares = " ".join(f"{name} {share:.0%}" for name, share in row["share"].items())
        lines.append(
            f"{row['work']:<14} {row['cores']:>5} {row['batch']:>6} {row['env_steps_per_second']:>10,.0f} "
            f"{twin:>7} {times:>8}  {shares}"
        )
    return "\n".join(lines)


def speeds(work: Work, all_cores: Sequence[int] = (1,), repeats: int | None = None) -> list[tuple[float, Crew]]:
    """Returns, for each number of cores, real steps per second and the crew that made them.

    Each is the median of several windows. They take turns, so that a machine whose mood changes is fair to all.
    """
    crews = []
    for cores in all_cores:
        crew = Crew(work.domain, work.values, work.config, batch=work.batch, lanes=cores, processes=cores)
        # Compiles, and lets the arenas grow: that takes longer than all else, and whole episodes tell how far.
        crew.step(work.config.max_steps or work.domain.max_steps)
        pace = Pace(WINDOW)
        _window(crew, pace)  # finds out how many moves fill one
        crews.append((crew, pace))
    windows = [[_window(crew, pace) for crew, pace in crews] for _ in range(repeats or REPEATS)]
    medians = map(statistics.median, zip(*windows, strict=True))
    return [(fast, crew) for fast, (crew, _) in zip(medians, crews, strict=True)]


def oracle_speed(work: Work) -> float | None:
    """Returns real steps per second of the plain-Python twin; None if this is not a source checkout.

    The twin is test code, so the package neither contains nor imports it; the benchmark is the one exception.
    """
    path = Path(bathysphere.__file__).parents[2] / "tests" / "oracles" / "planner.py"
    if not path.is_file():
        return None
    spec = importlib.util.spec_from_file_location("bathysphere_oracle_planner", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    rng = np.random.default_rng(0)
    _oracle_episode(module, work, rng).one_pass()  # loads compiled rules and networks
    steps, began = 0, time.perf_counter()
    while time.perf_counter() - began < ORACLE_SECONDS:
        episode = _oracle_episode(module, work, rng)
        while episode.outcome is None and time.perf_counter() - began < ORACLE_SECONDS:
            episode.begin_step()
            for _ in range(work.config.passes):
                episode.one_pass()
            episode.end_step()
            steps += 1
    return steps / (time.perf_counter() - began)


def _oracle_episode(module: Any, work: Work, rng: np.random.Generator) -> Any:
    def successors(key: bytes) -> list[tuple[Any, ...]]:
        states, *rest = (part[0] for part in work.domain.successors(np.frombuffer(key, np.uint8)[None]))
        return list(zip([row.tobytes() for row in states], *(part.tolist() for part in rest), strict=True))

    def evaluate(key: bytes) -> list[float]:
        row = np.frombuffer(key, np.uint8)[None]
        return [float(value) for value in work.values.evaluate(work.domain.observe(row))[0]]

    start, seed = work.domain.initial(1, rng)[0].tobytes(), int(rng.integers(2**63))
    members, limit = work.values.num_members, work.domain.max_steps
    return module.OracleEpisode(start, seed, successors, evaluate, work.config, members, limit)


def _row(work: Work, cores: int, slow: float | None, fast: float, crew: Crew) -> dict[str, Any]:
    return {
        "work": work.name,
        "cores": cores,
        "batch": work.batch,
        "env_steps_per_second": fast,
        "oracle_env_steps_per_second": slow,
        "ratio": None if slow is None else fast / slow,
        "share": shares(Search(work.domain, work.values, work.config, batch=work.batch), crew.seconds),
        "bytes_per_episode": crew.arena_bytes // work.batch,
    }


def _window(crew: Crew, pace: Pace) -> float:
    """Plays for one window and returns steps per second."""
    steps, began = 0, time.perf_counter()
    while (elapsed := time.perf_counter() - began) < 0.8 * pace.seconds:  # a call takes about as long
        steps += crew.num_active * pace.moves  # for every episode that ends, another one begins
        pace.step(crew)
    return steps / elapsed
