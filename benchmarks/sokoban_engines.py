"""Ways to evaluate the trained Sokoban network on one core: how many states a second, how exact, and how well it plays.

    OMP_NUM_THREADS=1 taskset -c 0 python benchmarks/sokoban_engines.py [--boards 300] [--passes 10]

Engines take turns on batches of the same positions of real episodes. Prints a Markdown table.
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
import torch

from bathysphere.agents.loading import load_trained
from bathysphere.domains import make_domain
from bathysphere.planning import Pool
from bathysphere.values import Ensemble

BATCHES, TURNS, TURN_STATES = (64, 256), 7, 2048
Evaluate = Callable[[np.ndarray], np.ndarray]


@dataclass
class Engine:
    """Values of positions by one engine, as planners want them."""

    evaluate: Evaluate
    num_members: int


def speeds(engines: dict[str, Evaluate], positions: np.ndarray, batch: int) -> dict[str, float]:
    """Returns states per second of each, the median of turns."""
    found: dict[str, list[float]] = {name: [] for name in engines}
    for _ in range(TURNS):
        for name, evaluate in engines.items():
            began = time.perf_counter()
            for start in range(0, TURN_STATES, batch):
                evaluate(positions[start : start + batch])
            found[name].append(TURN_STATES / (time.perf_counter() - began))
    return {name: statistics.median(rates) for name, rates in found.items()}


def main() -> None:
    """Measures all engines there are."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--boards", type=int, default=300)
    parser.add_argument("--passes", type=int, default=10)
    parser.add_argument("--seed", type=int, default=1000)
    args = parser.parse_args()
    torch.set_num_threads(1)
    trained = load_trained("sokoban")
    config, weights = trained.config, trained.values.weights()
    domain = make_domain(config.domain)
    search = replace(config.search, passes=args.passes)

    def play(engine: object) -> list:
        return Pool(domain, engine, search, batch=64, seed=args.seed, num_episodes=args.boards, workers=1).play()

    engines: dict[str, Evaluate] = {}
    for precision in ("float32", "int8"):
        values = replace(config.values, precision=precision)
        ensemble = Ensemble(values, config.optimiser, domain.observation, 0, num_actions=len(domain.action_names))
        ensemble.load_weights(weights)
        engines[precision] = ensemble.evaluate
    episodes = {"float32": play(Engine(engines["float32"], config.values.num_members))}
    positions = domain.observe(np.concatenate([episode.states for episode in episodes["float32"]]))
    positions = np.random.default_rng(0).permutation(positions)[: 2 * TURN_STATES]
    rates = [speeds(engines, positions, batch) for batch in BATCHES]
    exact = engines["float32"](positions)
    print(f"| engine | {' | '.join(f'states/s, batches of {batch}' for batch in BATCHES)} | mean error | solved |")
    print("|---" * (len(BATCHES) + 3) + "|")
    for name, evaluate in engines.items():
        solved = sum(
            episode.solved for episode in episodes.get(name) or play(Engine(evaluate, config.values.num_members))
        )
        error = np.abs(evaluate(positions) - exact).mean()
        shown = " | ".join(f"{rate[name]:,.0f}" for rate in rates)
        print(f"| {name} | {shown} | {error:.3f} | {solved} of {args.boards} |", flush=True)


if __name__ == "__main__":
    main()
