"""What a study costs on this machine: its steps at a speed that is measured now."""

from __future__ import annotations

import time

from bathysphere.learning.trainer import Trainer
from bathysphere.runs.build import make_trainer
from bathysphere.runs.config import RunConfig
from bathysphere.runs.serialise import override
from bathysphere.studies.study import Study, Trial

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
    trainer = make_trainer(override(config, {"search": {"max_steps": 20}, "learning": {"min_games": 1}}))
    _advance(trainer, _WARM_UP)
    before, began = trainer.progress.env_steps, time.perf_counter()
    _advance(trainer, _SECONDS)
    return (trainer.progress.env_steps - before) / (time.perf_counter() - began)


def _advance(trainer: Trainer, seconds: float) -> None:
    began = time.perf_counter()
    while time.perf_counter() - began < seconds:
        trainer.advance()


def most_seconds(study: Study, trials: list[Trial], num_processes: int, speeds: dict[str, float]) -> float:
    """Returns the seconds that trials take if no run ends early.

    Args:
      study: the study.
      trials: its runs.
      num_processes: runs side by side.
      speeds: environment steps per second by preset; those missing are measured and added.

    Mutates: speeds.
    """
    presets = {setting.name: setting.preset for setting in study.settings}
    total = 0.0
    for trial in trials:
        preset = presets[trial.setting]
        if preset not in speeds:
            speeds[preset] = measure_speed(trial.config)
        total += trial.config.steps / speeds[preset]
    return total / num_processes
