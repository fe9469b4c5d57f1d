"""Steps per second of the planner, beside its plain-Python twin."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bathysphere.bench.planner_shares import shares
from bathysphere.bench.timing import load_twin
from bathysphere.domains import DeepSea, DeepSeaConfig, Domain, SokobanConfig, ToyMontezuma, make_domain
from bathysphere.planning import MCTS, SearchConfig, Values
from bathysphere.planning.planner import TimedSteps
from bathysphere.values import Ensemble, OptimiserConfig, ValuesConfig

REPEATS = 5
WINDOW = 2.0  # seconds per repeat
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
class Task:
    """One thing to plan: a domain, its values, the paper's settings, and a batch that suits it."""

    name: str
    domain: Domain
    values: Values
    config: SearchConfig
    batch: int


def deep_sea(batch: int = 128) -> Task:
    """Returns the paper's Deep-sea: 20 linear members, of which 10 rank actions."""
    domain = DeepSea(DeepSeaConfig(size=40))
    values = Ensemble(ValuesConfig("linear", bias=False), OptimiserConfig(), domain.observation, seed=0)
    config = SearchConfig(risk_coef=50.0, num_subsampled=10, avoid_loops=False)
    return Task("deep-sea", domain, values, config, batch)


def toy_montezuma(batch: int = 512) -> Task:
    """Returns the paper's Toy Montezuma: 24 rooms, 20 networks 15-50-50-1."""
    domain = ToyMontezuma()
    values = Ensemble(ValuesConfig("mlp", hidden=(50, 50)), OptimiserConfig(), domain.observation, seed=0)
    config = SearchConfig(risk_coef=3.0, num_subsampled=10, episode_penalty=0.2)
    return Task("toy-montezuma", domain, values, config, batch)


def sokoban(batch: int = 512) -> Task:
    """Returns the paper's multi-board Sokoban with three voting members, but without their network."""
    domain = make_domain(SokobanConfig(num_boards=20))
    config = SearchConfig(risk="vote", final_ties="random", episode_penalty=2.0, dead_end_value=-2.0)
    return Task("sokoban", domain, StubValues(domain.state_size), config, batch)


TASKS: tuple[Callable[..., Task], ...] = (deep_sea, toy_montezuma, sokoban)


def bench_planner() -> dict[str, Any]:
    """Measures every task on one core."""
    import torch

    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        return {"rows": [_row(make()) for make in TASKS]}
    finally:
        torch.set_num_threads(threads)


def describe(result: dict[str, Any]) -> str:
    """Returns the result as lines for people."""
    lines = [f"{'work':<14} {'batch':>6} {'steps/s':>10} {'twin':>7} {'ratio':>8}  share of time"]
    for row in result["rows"]:
        slow, ratio = row["oracle_env_steps_per_second"], row["ratio"]
        twin = "-" if slow is None else f"{slow:,.0f}"
        times = "-" if ratio is None else f"{ratio:,.0f}x"
        shares = " ".join(f"{name} {share:.0%}" for name, share in row["share"].items())
        lines.append(
            f"{row['work']:<14} {row['batch']:>6} {row['env_steps_per_second']:>10,.0f} {twin:>7} {times:>8}  {shares}"
        )
    if any(row["ratio"] is None for row in result["rows"]):
        lines.append("-: the plain-Python twin comes with the source checkout only, so it was not measured.")
    return "\n".join(lines)


def speed(task: Task, repeats: int | None = None) -> tuple[float, MCTS]:
    """Returns steps per second, the median of several windows, and the planner that made them."""
    planner = MCTS(task.domain, task.values, task.config, batch=task.batch)
    # Compiles, and lets the arena grow: that takes longer than all else, and whole episodes tell how far.
    planner.step(task.config.max_steps or task.domain.max_steps)
    timed = TimedSteps(WINDOW)
    _window(planner, timed)  # finds out how many steps fill one
    return statistics.median(_window(planner, timed) for _ in range(repeats or REPEATS)), planner


def oracle_speed(task: Task) -> float | None:
    """Returns steps per second of the plain-Python twin; None if this is not a source checkout."""
    module = load_twin("planner")
    if module is None:
        return None
    rng = np.random.default_rng(0)
    _oracle_episode(module, task, rng).one_pass()  # loads compiled rules and networks
    steps, began = 0, time.perf_counter()
    while time.perf_counter() - began < ORACLE_SECONDS:
        episode = _oracle_episode(module, task, rng)
        while episode.outcome is None and time.perf_counter() - began < ORACLE_SECONDS:
            episode.begin_step()
            for _ in range(task.config.passes):
                episode.one_pass()
            episode.end_step()
            steps += 1
    return steps / (time.perf_counter() - began)


def _oracle_episode(module: Any, task: Task, rng: np.random.Generator) -> Any:
    def successors(key: bytes) -> list[tuple[Any, ...]]:
        states, *rest = (part[0] for part in task.domain.successors(np.frombuffer(key, np.uint8)[None]))
        return list(zip([row.tobytes() for row in states], *(part.tolist() for part in rest), strict=True))

    def evaluate(key: bytes) -> list[float]:
        row = np.frombuffer(key, np.uint8)[None]
        return [float(value) for value in task.values.evaluate(task.domain.observe(row))[0]]

    start, seed = task.domain.initial(1, rng)[0].tobytes(), int(rng.integers(2**63))
    members, limit = task.values.num_members, task.domain.max_steps
    return module.OracleEpisode(start, seed, successors, evaluate, task.config, members, limit)


def _row(task: Task) -> dict[str, Any]:
    slow = oracle_speed(task)
    fast, planner = speed(task)
    return {
        "work": task.name,
        "batch": task.batch,
        "env_steps_per_second": fast,
        "oracle_env_steps_per_second": slow,
        "ratio": None if slow is None else fast / slow,
        "share": shares(MCTS(task.domain, task.values, task.config, batch=task.batch), planner.work.seconds),
        "bytes_per_episode": planner.graph_bytes // task.batch,
    }


def _window(planner: MCTS, timed: TimedSteps) -> float:
    """Plays for one window and returns steps per second."""
    steps, began = 0, time.perf_counter()
    while (elapsed := time.perf_counter() - began) < 0.8 * timed.seconds:  # a call takes about as long
        steps += len(planner.active) * timed.steps  # for every episode that ends, another one begins
        timed.step(planner)
    return steps / elapsed
