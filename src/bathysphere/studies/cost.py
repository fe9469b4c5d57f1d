"""What a study costs on this machine: its steps at a speed that is measured now."""

from __future__ import annotations

import time
from dataclasses import replace
from typing import Any

from bathysphere.config.convert import override
from bathysphere.config.run import RunConfig
from bathysphere.domains import make_domain
from bathysphere.learning.trainer import Trainer
from bathysphere.runs.build import make_trainer
from bathysphere.studies.study import Trial

_WARM_UP, _SECONDS = 0.3, 0.7


def measure_speed(config: RunConfig) -> float:
    """Returns environment steps per second with learning in one thread, from about a second of it.

    Games are cut short, so that learning begins at once.
    """
    import torch

    num_threads = torch.get_num_threads()
    torch.set_num_threads(1)  # as the runs of a study have
    try:
        return _measure(config)
    finally:
        torch.set_num_threads(num_threads)


def _measure(config: RunConfig) -> float:
    trainer = make_trainer(override(config, {"search": {"max_steps": 20}, "learning": {"min_games": 1}}), is_new=False)
    _advance(trainer, _WARM_UP)
    before, began = trainer.progress.env_steps, time.perf_counter()
    _advance(trainer, _SECONDS)
    return (trainer.progress.env_steps - before) / (time.perf_counter() - began)


def _advance(trainer: Trainer, seconds: float) -> None:
    began = time.perf_counter()
    while time.perf_counter() - began < seconds:
        trainer.advance()


def most_seconds(trials: list[Trial], num_processes: int, speeds: dict[Any, float]) -> float:
    """Returns the seconds that trials take if no run ends early.

    Args:
      trials: the runs.
      num_processes: runs side by side.
      speeds: environment steps per second by what they mostly depend on; those missing are measured and added.

    Mutates: speeds.
    """
    seconds: dict[tuple[str, str], float] = {}  # of a run, by setting and case
    for trial in trials:
        config, place = trial.config, (trial.setting, trial.case.name)
        kind = (config.preset, config.search.passes, replace(config.values, aggregator="linear"))
        if kind not in speeds:
            speeds[kind] = measure_speed(config)
        if place not in seconds:
            seconds[place] = _most_steps(trial) / speeds[kind]
    return sum(seconds[trial.setting, trial.case.name] for trial in trials) / num_processes


def _most_steps(trial: Trial) -> int:
    """Returns the most steps that a run makes, those of its evaluation included."""
    config, steps = trial.config, trial.config.steps
    if config.stop.episodes is None and not trial.evaluation:
        return steps
    length = config.search.max_steps or make_domain(config.domain).max_steps
    if config.stop.episodes is not None:
        num_rounds = -(-config.stop.episodes // config.batch)
        steps = min(steps, num_rounds * config.batch * min(config.learning.max_steps or length, length))
    return steps + trial.evaluation * length
