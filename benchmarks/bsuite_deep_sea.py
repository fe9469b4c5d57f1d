"""bsuite's own Deep-sea through dm_env, scored by bsuite's own analysis.

    pip install -c constraints.txt bsuite
    python benchmarks/bsuite_deep_sea.py [--sizes 10 20 30] [--episodes 200] [--out runs/bsuite]
    python benchmarks/bsuite_deep_sea.py --stochastic [--sizes 10 20 50] [--episodes 10000]

Trains in each size with the settings of the preset deep-sea. The actions of every finished episode are made once more
in the environment that bsuite logs, so that its log has real episodes and nothing of what planning tried.

With --stochastic, in bsuite's deep_sea_stochastic: a step to the right fails with probability 1 / size, and the last
rewards are noisy. Members then learn values of actions, without a planner and without rules (preset
deep-sea-no-planner, learning rate 0.1), each of them from half of all steps: one unlucky step is not believed by all at
once. A run ends soon after bsuite counts it as solved. What bsuite logs are the same episodes, with the luck they had.

bsuite 0.3.6 was written for pandas 1: `Series.append`, which its analysis calls and pandas has removed, is given back
here.
"""

from __future__ import annotations

import argparse
import shutil
import time
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

import bathysphere
from bathysphere.config.presets import find_preset
from bathysphere.config.run import RunConfig
from bathysphere.domains.base import Domain
from bathysphere.domains.worlds import describe
from bathysphere.learning.masks import MaskConfig

_ENOUGH = 0.75  # share of bad episodes below which a run ends; bsuite counts as solved what comes below 0.8
_FIRST = 100  # episodes before which bsuite does not look


class Luck:
    """Stands for the random generator of bsuite's environment and gives back what happened in an episode.

    Args:
      episode: a finished one.
      domain: in which it was played.
      mapping: of bsuite's environment, [size, size]: the action that leads to the right.
      move_cost: of a step to the right.
    """

    def __init__(self, episode: Any, domain: Domain, mapping: Any, move_cost: float) -> None:
        size = len(mapping)
        places = np.asarray(domain.observe(episode.states)).ravel() - int(domain.observe(episode.states[:1])[0, 0])
        rows, columns = np.divmod(places, size)
        right = episode.actions == mapping[rows, columns]
        # After the last step nothing is seen, and nothing depends on where it led.
        stays = np.append((columns[1:] <= columns[:-1]) & (columns[:-1] < size - 1), False)
        self._moves = iter(np.where(stays, 0.0, 1.0)[right].tolist())
        plain = float(right[-1] and columns[-1] == size - 1) - move_cost * float(right[-1])
        self._noise = float(episode.rewards[-1]) - plain

    def rand(self) -> float:
        """Decides whether the next step to the right fails."""
        return next(self._moves)

    def randn(self) -> float:
        """The noise of the last reward."""
        return self._noise


def train(size: int, episodes: int, out: Path, seed: int, *, stochastic: bool) -> None:
    """Trains in one size, and has bsuite log the episodes."""
    from bsuite import sweep
    from bsuite.environments.deep_sea import DeepSea
    from bsuite.logging import csv_logging
    from bsuite.utils.wrappers import Logging

    settings = {"size": size, "mapping_seed": 42}
    names = sweep.DEEP_SEA_STOCHASTIC if stochastic else sweep.DEEP_SEA
    number = next(name for name in names if sweep.SETTINGS[name] == settings)
    sea = DeepSea(**settings, deterministic=not stochastic)
    logged = Logging(sea, csv_logging.Logger(number, str(out), overwrite=True), log_every=True)
    make = partial(DeepSea, **settings, deterministic=not stochastic)
    config, domain = describe(bathysphere.from_dm_env(make, max_steps=size))
    preset = find_preset("deep-sea-no-planner" if stochastic else "deep-sea")
    if stochastic:
        learning = replace(preset.learning, mask=MaskConfig(kind="bernoulli", per="transition"))
        optimiser = replace(preset.optimiser, learning_rate=0.1)
        preset = replace(preset, steps=episodes * size, optimiser=optimiser, learning=learning)
    run: RunConfig = replace(preset, domain=config, seed=seed)
    num_bad = num_episodes = 0

    def log(episode: Any, progress: Any) -> bool:
        nonlocal num_bad, num_episodes
        if stochastic:
            sea._rng = Luck(episode, domain, sea._action_mapping, sea._unscaled_move_cost / size)
        logged.reset()
        rewards = [float(logged.step(action).reward) for action in episode.actions.tolist()]
        if not np.allclose(rewards, episode.rewards):
            raise SystemExit(f"Episode {num_episodes} went otherwise when it was made again.")
        num_bad, num_episodes = sea.bsuite_info()["total_bad_episodes"], num_episodes + 1
        return stochastic and num_episodes > _FIRST and num_bad < _ENOUGH * num_episodes

    began = time.perf_counter()
    folder = out / f"size{size}"
    shutil.rmtree(folder, ignore_errors=True)
    stop = {"episodes": episodes, "on_solved": False, "on_first_win": False}
    result = bathysphere.train(run, run_dir=folder, pictures=False, on_episode=log, stop=stop)
    wins = f"first solved at step {result['first_solved_step']}, {result['wins']} of {num_episodes} episodes won"
    told = f"{num_bad} of {num_episodes} episodes bad" if stochastic else wins
    print(f"size {size}: {told}, {result['env_steps']} steps, {time.perf_counter() - began:.0f} s", flush=True)


def score(out: Path, *, stochastic: bool) -> float:
    """Returns bsuite's score of what it logged: the share of sizes solved sooner than by chance."""
    from bsuite.experiments.deep_sea import analysis as plain
    from bsuite.experiments.deep_sea_stochastic import analysis as with_chance
    from bsuite.logging import csv_load

    analysis = with_chance if stochastic else plain
    if not hasattr(pd.Series, "append"):
        pd.Series.append = lambda self, other: pd.concat([self, other])
    frame, _ = csv_load.load_bsuite(str(out))
    print(analysis.find_solution(frame)[["size", "episode", "solved"]].to_string(index=False))
    return float(analysis.score(frame))


def main() -> None:
    """Trains in all sizes and prints the score."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--stochastic", action="store_true")
    parser.add_argument("--sizes", type=int, nargs="+", default=list(range(10, 31, 2)))
    parser.add_argument("--episodes", type=int, help="at most; 200, or bsuite's 10,000 with --stochastic")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--out", type=Path, default=Path("runs/bsuite"))
    args = parser.parse_args()
    args.out.mkdir(parents=True, exist_ok=True)
    episodes = args.episodes or (10_000 if args.stochastic else 200)
    for size in args.sizes:
        train(size, episodes, args.out, args.seed, stochastic=args.stochastic)
    print(f"bsuite's score: {score(args.out, stochastic=args.stochastic)}")


if __name__ == "__main__":
    main()
