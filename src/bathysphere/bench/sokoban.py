"""Training on fresh Sokoban boards: steps per second, and where the time goes."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import numpy as np

from bathysphere.agents.loading import load_values
from bathysphere.config.presets import find_preset
from bathysphere.config.run import RunConfig
from bathysphere.domains import SokobanConfig
from bathysphere.errors import BathysphereError
from bathysphere.learning.learner import Learner
from bathysphere.runs.build import make_trainer
from bathysphere.values.ensemble import Ensemble

PRESETS = ("paper/sokoban", "sokoban")
NETWORK_SECONDS = 2.0  # for the network alone
_MIN_EPISODES = 10  # learning begins at once, because waiting for it is not what is measured


def bench_sokoban(preset: str | None = None, agent: str | None = None) -> dict[str, Any]:
    """Measures presets on one core and, if there is a second, on two, which only the network can use.

    Args:
      preset: the one to measure; both of ours and the paper's if not given.
      agent: begin with the values of this agent, and train with its settings. Episodes of a trained agent are shorter,
        and end at different times.
    """
    if agent is None:
        names = PRESETS if preset is None else (preset,)
        works: list[tuple[RunConfig, Ensemble | None]] = [(find_preset(name), None) for name in names]
    else:
        config, _, values = load_values(agent)
        works = [(config, values)]
    for config, _ in works:
        if not isinstance(config.domain, SokobanConfig):
            raise BathysphereError(f"{config.preset} does not play Sokoban; choose {' or '.join(PRESETS)}.")
    places = (1, 2) if (os.cpu_count() or 1) > 1 else (1,)
    return {"rows": [_measure(config, values, cores) for config, values in works for cores in places]}


def describe(result: dict[str, Any]) -> str:
    """Returns the result as lines for people."""
    lines = []
    for row in result["rows"]:
        shares = ", ".join(f"{name} {share:.1%}" for name, share in row["share"].items())
        lines += [
            f"{row['preset']}, {row['cores']} core(s): "
            f"{row['env_steps_per_second']:,.0f} env steps/s with learning, "
            f"{row['network_states_per_second']:,.0f} states/s in the network alone",
            f"  {row['states_per_env_step']:.2f} new states per env step, {row['states_per_call']:.0f} per call; "
            f"{row['outside_network']:.1%} of the time outside the network",
            f"  {shares}",
        ]
    return "\n".join(lines)


def _measure(config: RunConfig, values: Ensemble | None, cores: int) -> dict[str, Any]:
    """Trains through as many steps as an episode may have, so that each of its parts comes as often as in a run."""
    config = replace(
        config,
        learning=replace(config.learning, min_episodes=min(config.learning.min_episodes, _MIN_EPISODES)),
    )
    with _only(cores):
        trainer = make_trainer(config, is_new=values is None)
        if values is not None:
            trainer.values.load_weights(values.weights())
        trainer.advance()  # compiles
        before, began = _spent(trainer), time.perf_counter()
        calls, batches = trainer.work.network_calls, trainer.work.network_batches
        num_steps = trainer.max_steps
        for _ in range(num_steps):
            trainer.advance()
        wall = time.perf_counter() - began
        calls, batches = trainer.work.network_calls - calls, trainer.work.network_batches - batches
        seconds = {name: spent - before[name] for name, spent in _spent(trainer).items()}
        steps = num_steps * config.batch
        states_per_call = calls / batches
        alone = _network_alone(trainer, round(states_per_call))
    share = {name: spent / wall for name, spent in seconds.items()}
    share["other"] = 1.0 - sum(share.values())
    return {
        "preset": config.preset,
        "cores": cores,
        "batch": config.batch,
        "env_steps": steps,
        "updates": trainer.progress.updates,
        "env_steps_per_second": steps / wall,
        "states_per_env_step": calls / steps,
        "states_per_call": states_per_call,
        "network_states_per_second": alone,
        "share": share,
        "outside_network": 1.0 - share["inference"] - share["gradient_steps"],
    }


def _spent(trainer: Learner) -> dict[str, float]:
    """Returns the seconds that each part has had."""
    phases = trainer.work.seconds
    return {
        "inference": phases["network"],
        "gradient_steps": trainer.update_seconds,
        "planner": phases["sweep"] + phases["insert"] + phases["other"],
        "rules": phases["model"],
        "replay": trainer.learning_seconds - trainer.update_seconds,
        "boards": phases["starts"],
    }


def _network_alone(trainer: Learner, num_states: int) -> float:
    """Returns states per second of the network by itself, with the run's batches."""
    states = trainer.domain.initial(min(num_states, 32), np.random.default_rng(0))
    observations = trainer.domain.observe(np.resize(states, (num_states, trainer.domain.state_size)))
    began, count = time.perf_counter(), 0
    while count == 0 or time.perf_counter() < began + NETWORK_SECONDS:
        trainer.values.evaluate(observations)
        count += len(observations)
    return count / (time.perf_counter() - began)


@contextmanager
def _only(cores: int) -> Iterator[None]:
    """Lets this process and its children use that many cores only, and PyTorch as many threads."""
    import torch

    threads = torch.get_num_threads()
    affinity = os.sched_getaffinity(0) if hasattr(os, "sched_getaffinity") else None
    torch.set_num_threads(cores)
    if affinity is not None:
        os.sched_setaffinity(0, sorted(affinity)[:cores])
    try:
        yield
    finally:
        if affinity is not None:
            os.sched_setaffinity(0, affinity)
        torch.set_num_threads(threads)
