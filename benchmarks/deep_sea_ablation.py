"""What the `deep-sea` preset owes to each of its choices: one field changed at a time, everything else kept.

    python benchmarks/deep_sea_ablation.py [--size 50] [--seeds 10] [--limit 60000]

Prints a Markdown table: how many seeds were solved (more than half of the latest 50 episodes won) within the limit, and
after how many episodes. About five minutes on one core.
"""

from __future__ import annotations

import argparse
from concurrent.futures import ProcessPoolExecutor
from dataclasses import replace
from functools import partial

import numpy as np

from bathysphere.config.presets import find_preset
from bathysphere.config.run import RunConfig
from bathysphere.domains import DeepSeaConfig
from bathysphere.learning.masks import MaskConfig
from bathysphere.runs.build import make_trainer

BASE = find_preset("deep-sea")


def change(section: str, **fields: object) -> RunConfig:
    return replace(BASE, **{section: replace(getattr(BASE, section), **fields)})


def capacity(episodes: int) -> RunConfig:
    return change("learning", replay=replace(BASE.learning.replay, capacity=episodes))


VARIANTS: dict[str, RunConfig] = {
    "the preset": BASE,
    "one target for all members (the paper's)": change("learning", target="bootstrap"),
    "... and Bernoulli(0.5) masks": change("learning", target="bootstrap", mask=MaskConfig("bernoulli")),
    "... and one-hot masks (the paper's)": change("learning", target="bootstrap", mask=MaskConfig("one_hot")),
    "own targets and Bernoulli(0.5) masks": change("learning", mask=MaskConfig("bernoulli")),
    "risk coefficient 0": change("search", risk_coef=0.0),
    "risk coefficient 2": change("search", risk_coef=2.0),
    "risk coefficient 50 (the paper's)": change("search", risk_coef=50.0),
    "all 20 members rank actions": change("search", num_subsampled=None),
    "10 members, 5 rank actions": replace(
        change("search", num_subsampled=5), values=replace(BASE.values, num_members=10)
    ),
    "initial spread x1 (the paper's, no prior)": change("values", init_scale=1.0),
    "initial spread x8": change("values", init_scale=8.0),
    "100 episodes of replay (the paper's)": capacity(100),
    "30 episodes of replay": capacity(30),
    "an update per 2 steps": change("learning", steps_per_update=2.0),
    "an update per 10 steps (the paper's)": change("learning", steps_per_update=10.0),
    "rate 0.5": change("optimiser", learning_rate=0.5),
    "one episode at a time": replace(BASE, batch=1),
    "32 episodes at a time": replace(BASE, batch=32),
}


def episodes_to_solve(config: RunConfig, limit: int, seed: int) -> float:
    """Returns the number of episodes after which a run was solved; infinity if it was not."""
    trainer = make_trainer(replace(config, seed=seed))
    while trainer.progress.env_steps < limit and trainer.progress.solved_step is None:
        trainer.advance()
    return trainer.progress.episodes if trainer.progress.solved_step is not None else np.inf


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--size", type=int, default=50)
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--limit", type=int, default=60_000)
    parser.add_argument("--jobs", type=int, default=1)
    options = parser.parse_args()
    print(f"| Deep-sea N={options.size}, within {options.limit:,} steps | solved | median episodes | slowest |")
    print("|---|---|---|---|")
    with ProcessPoolExecutor(options.jobs) as pool:
        for name, config in VARIANTS.items():
            config = replace(config, domain=DeepSeaConfig(size=options.size))
            episodes = list(pool.map(partial(episodes_to_solve, config, options.limit), range(options.seeds)))
            solved = int(np.isfinite(episodes).sum())
            middle, worst = ("never" if np.isinf(x) else f"{x:.0f}" for x in (np.median(episodes), max(episodes)))
            print(f"| {name} | {solved}/{options.seeds} | {middle} | {worst} |", flush=True)


if __name__ == "__main__":
    main()
