"""What a study costs: its steps, at the speed of the runs in `results/` or one that is measured now."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

from bathysphere.config.convert import override
from bathysphere.config.run import RunConfig
from bathysphere.domains import make_domain
from bathysphere.learning.learner import Learner
from bathysphere.runs.build import make_trainer
from bathysphere.storage.files import read_json
from bathysphere.studies.study import Trial

_WARM_UP, _SECONDS = 0.3, 0.7


@cache
def measured_before() -> dict[str, Any]:
    """Returns the `machine` and, by study and budget, `env_steps_per_second`: the mean over all steps of a study.

    They are those of the runs in `results/`; a budget is missing whose settings have not been run.
    """
    speeds: dict[str, Any] = read_json(Path(__file__).with_name("speeds.json"))
    return speeds


def mean_speed(trials: Sequence[Trial], speeds: dict[Any, float]) -> float:
    """Measures how many environment steps a second trials make, one at a time, as a mean over all their steps.

    Args:
      trials: the runs.
      speeds: environment steps per second by what they mostly depend on; those missing are measured and added.

    Mutates: speeds.
    """
    num_steps, seconds = 0, 0.0
    for trial in trials:
        config = trial.config
        kind = (config.preset, config.search, replace(config.values, aggregator="linear"))
        if kind not in speeds:
            speeds[kind] = measure_speed(config)
        steps = most_steps(trial)
        num_steps, seconds = num_steps + steps, seconds + steps / speeds[kind]
    return num_steps / seconds


def measure_speed(config: RunConfig) -> float:
    """Returns environment steps per second of one core, with learning: the better of two windows.

    Episodes are cut short, so that learning begins at once. Seconds are the processor's: other programs do not count.
    """
    import torch

    num_threads = torch.get_num_threads()
    torch.set_num_threads(1)  # as the runs of a study have
    try:
        changes = {"search": {"max_steps": 20}, "learning": {"min_episodes": 1}}
        trainer = make_trainer(override(config, changes), is_new=False)
        _window(trainer, _WARM_UP)
        return max(_window(trainer, _SECONDS) for _ in range(2))  # in the first, something may have been compiled
    finally:
        torch.set_num_threads(num_threads)


def _window(trainer: Learner, seconds: float) -> float:
    """Trains for about that many seconds of the processor; returns environment steps per second."""
    before, began = trainer.progress.env_steps, time.process_time()
    while (gone := time.process_time() - began) < seconds:
        trainer.advance()
    return (trainer.progress.env_steps - before) / gone


def most_steps(trial: Trial) -> int:
    """Returns the most steps that a run makes, those of its evaluation included."""
    config, steps = trial.config, trial.config.steps
    if config.stop.episodes is None and not trial.evaluation:
        return steps
    length = config.search.max_steps or make_domain(config.domain).max_steps
    if config.stop.episodes is not None:
        num_rounds = -(-config.stop.episodes // config.batch)
        steps = min(steps, num_rounds * config.batch * min(config.learning.max_steps or length, length))
    return steps + trial.evaluation * length
