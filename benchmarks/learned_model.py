"""How much slower planning is with a learned model than with the rules: python benchmarks/learned_model.py

Plays with the presets' own networks, untrained, and does not learn. The kinds of planning take turns, a few steps at
a time, and processor time is measured, so that other programs on the machine disturb all of them alike.
"""

from __future__ import annotations

import argparse
import json
import time

import numpy as np
import torch

from bathysphere.config.presets import find_preset
from bathysphere.domains import make_domain
from bathysphere.models.learned import load_model
from bathysphere.models.model_file import shipped_models
from bathysphere.planning import MCTS
from bathysphere.values.ensemble import Ensemble


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--presets", nargs="+", default=["sokoban", "paper/sokoban"])
    parser.add_argument("--models", nargs="+", default=list(shipped_models()), help="names of shipped models, or files")
    parser.add_argument("--rounds", type=int, default=8)
    parser.add_argument("--steps", type=int, default=5, help="steps of the whole batch in a round")
    options = parser.parse_args()
    torch.set_num_threads(1)
    rows = [row for preset in options.presets for row in measure(preset, options.models, options.rounds, options.steps)]
    print(json.dumps({"rows": rows}))


def measure(preset: str, names: list[str], rounds: int, steps: int) -> list[dict[str, object]]:
    config = find_preset(preset)
    domain = make_domain(config.domain)
    values = Ensemble(config.values, config.optimiser, domain.observation, 0)
    models = {"rules": None} | {name: load_model(name, domain) for name in names}
    planners = {
        name: MCTS(domain, values, config.search, batch=config.batch, model=model) for name, model in models.items()
    }
    seconds: dict[str, list[float]] = {name: [] for name in models}
    for _ in range(rounds + 1):  # the first warms up
        for name, planner in planners.items():
            before = time.process_time()
            for _ in range(steps):
                planner.step()
            seconds[name].append(time.process_time() - before)
    median = {name: float(np.median(times[1:])) for name, times in seconds.items()}
    return [
        {
            "preset": preset,
            "model": name,
            "env_steps_per_second": round(config.batch * steps / median[name], 1),
            "times_slower": round(median[name] / median["rules"], 2),
            "share_model": round(planner.work.seconds["model"] / sum(planner.work.seconds.values()), 3),
        }
        for name, planner in planners.items()
    ]


if __name__ == "__main__":
    main()
