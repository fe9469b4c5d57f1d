"""What the `sokoban` preset owes to each of its choices: one field changed at a time, everything else kept.

    python benchmarks/sokoban_ablation.py [--steps 100000] [--seeds 1] [--jobs 1] [--only "the preset" ...]

Prints a Markdown table: the share of the latest 300 episodes, on boards never seen before, that were won when the steps
were used up, and the time it took. A variant takes about ten minutes on one core.
"""

from __future__ import annotations

import argparse
import time
from concurrent.futures import ProcessPoolExecutor
from dataclasses import replace
from functools import partial

import numpy as np

from bathysphere.config.presets import find_preset
from bathysphere.config.run import RunConfig
from bathysphere.learning.masks import MaskConfig
from bathysphere.runs.build import make_trainer

LATEST = 300
BASE = find_preset("sokoban")


def change(section: str, **fields: object) -> RunConfig:
    return replace(BASE, **{section: replace(getattr(BASE, section), **fields)})


VARIANTS: dict[str, RunConfig] = {
    "the preset": BASE,
    "played in float32": change("values", precision="float32"),
    "10 passes": change("search", passes=10),
    "nodes not merged": change("search", merge_nodes=False, patience=0.0),
    "the paper's penalties": change("search", episode_penalty=2.0, dead_end_value=-2.0),
    "actions ranked by votes": change("search", risk="vote"),
    "episodes of 200 steps": change("learning", max_steps=None),
    "no weight decay": change("optimiser", weight_decay=0.0),
    "no policy": change("values", policy=False),
    "rate 0.0005, the weights themselves play": change("optimiser", learning_rate=5e-4, averaging=0.0),
    "the weights themselves play": change("optimiser", averaging=0.0),
    "no hindsight": change("learning", hindsight=0.0),
    "hindsight episodes kept as solved": change("learning", hindsight_as="solved"),
    "targets half search, half outcome": change("learning", target="mixed"),
    "targets of the search, at least the return": change("learning", target="bootstrap_best"),
    "no symmetries": change("learning", symmetries=False),
    "an update per 10 steps": change("learning", steps_per_update=10.0),
    "all heads learn from all entries": change("learning", mask=MaskConfig(kind="none")),
    "a network for boards of one size": change(
        "values",
        network="cnn",
        policy=False,
        conv_layers=7,
        dense=128,
        residual=True,
        global_pooling=True,
        shared_trunk=True,
    ),
    "targets of the best continuation known": change("learning", target="graph"),
    "one head": replace(
        BASE,
        values=replace(BASE.values, num_members=1),
        learning=replace(BASE.learning, mask=MaskConfig(kind="none")),
    ),
}


def win_rate(config: RunConfig, steps: int, seed: int) -> tuple[float, float]:
    """Returns the share of the latest episodes won, and the seconds, after `steps` steps."""
    import torch

    torch.set_num_threads(1)
    trainer = make_trainer(replace(config, seed=seed))
    wins: list[bool] = []
    began = time.perf_counter()
    while trainer.progress.env_steps < steps:
        wins += [episode.solved for episode in trainer.advance()]
    return float(np.mean(wins[-LATEST:])), time.perf_counter() - began


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--steps", type=int, default=100_000)
    parser.add_argument("--seeds", type=int, default=1)
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--only", nargs="*", default=list(VARIANTS), choices=list(VARIANTS))
    options = parser.parse_args()
    print(
        f"| Sokoban after {options.steps:,} steps, seeds 0 to {options.seeds - 1} | won of the latest {LATEST} | time |"
    )
    print("|---|---|---|")
    with ProcessPoolExecutor(options.jobs) as pool:
        for name in options.only:
            results = list(pool.map(partial(win_rate, VARIANTS[name], options.steps), range(options.seeds)))
            rates, seconds = zip(*results, strict=True)
            shown = ", ".join(f"{rate:.0%}" for rate in rates)
            print(f"| {name} | {shown} | {np.mean(seconds) / 60:.1f} min |", flush=True)


if __name__ == "__main__":
    main()
