"""bsuite's own Deep-sea through dm_env, scored by bsuite's own analysis.

    pip install -c constraints.txt bsuite
    python benchmarks/bsuite_deep_sea.py [--sizes 10 20 30] [--episodes 200] [--out runs/bsuite]

Trains in each size with the settings of the preset deep-sea. The actions of every finished episode are made once more
in the environment that bsuite logs, so that its log has real episodes and nothing of what planning tried. bsuite 0.3.6
was written for pandas 1: `Series.append`, which its analysis calls and pandas has removed, is given back here.
"""

from __future__ import annotations

import argparse
import shutil
import time
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import pandas as pd

import bathysphere
from bathysphere.config.presets import find_preset
from bathysphere.config.run import RunConfig
from bathysphere.domains.worlds import describe


def train(size: int, episodes: int, out: Path, seed: int) -> None:
    """Trains in one size, and has bsuite log the episodes."""
    from bsuite import sweep
    from bsuite.environments.deep_sea import DeepSea
    from bsuite.logging import csv_logging

    settings = {"size": size, "mapping_seed": 42}
    number = next(name for name in sweep.DEEP_SEA if sweep.SETTINGS[name] == settings)
    logged = csv_logging.wrap_environment(DeepSea(**settings), number, str(out), overwrite=True)
    config, _ = describe(bathysphere.from_dm_env(partial(DeepSea, **settings), max_steps=size))
    run: RunConfig = replace(find_preset("deep-sea"), domain=config, seed=seed)

    def log(episode: Any, progress: Any) -> None:
        logged.reset()
        for action in episode.actions.tolist():
            logged.step(action)

    began = time.perf_counter()
    folder = out / f"size{size}"
    shutil.rmtree(folder, ignore_errors=True)
    stop = {"episodes": episodes, "on_solved": False, "on_first_win": False}
    result = bathysphere.train(run, run_dir=folder, pictures=False, on_episode=log, stop=stop)
    print(
        f"size {size}: first solved at step {result['first_solved_step']}, {result['wins']} of {result['episodes']} "
        f"episodes won, {time.perf_counter() - began:.0f} s",
        flush=True,
    )


def score(out: Path) -> float:
    """Returns bsuite's score of what it logged: the share of sizes solved sooner than by chance."""
    from bsuite.experiments.deep_sea import analysis
    from bsuite.logging import csv_load

    if not hasattr(pd.Series, "append"):
        pd.Series.append = lambda self, other: pd.concat([self, other])
    frame, _ = csv_load.load_bsuite(str(out))
    print(analysis.find_solution(frame)[["size", "episode", "solved"]].to_string(index=False))
    return float(analysis.score(frame))


def main() -> None:
    """Trains in all sizes and prints the score."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sizes", type=int, nargs="+", default=list(range(10, 31, 2)))
    parser.add_argument("--episodes", type=int, default=200)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--out", type=Path, default=Path("runs/bsuite"))
    args = parser.parse_args()
    args.out.mkdir(parents=True, exist_ok=True)
    for size in args.sizes:
        train(size, args.episodes, args.out, args.seed)
    print(f"bsuite's score: {score(args.out)}")


if __name__ == "__main__":
    main()
