"""A training of a model from its data to its file, with stop rules, and a checkpoint beside the file to go on from."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import asdict, fields, replace
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from bathysphere.errors import BathysphereError
from bathysphere.models.config import FREE, OLD_NAMES, TrainingConfig
from bathysphere.models.data import make_boards, play_randomly
from bathysphere.models.evaluation import Tally, on_states, positions
from bathysphere.models.learned import LearnedModel, weights_of
from bathysphere.models.model_file import FORMAT, BoardSpec, ModelFile, write_model
from bathysphere.models.trainer import ModelTrainer, make_domain
from bathysphere.storage.plain import read_as, translated
from bathysphere.storage.state import Arrays
from bathysphere.storage.tensors import SUFFIX, halved, in_full, read_arrays, write_arrays
from bathysphere.storage.versions import collect_versions

_KEY = "bathysphere.model-training"
_SAVE_SECONDS = 30.0  # between two checkpoints
_UPDATES_AT_ONCE = 50  # between two looks at the clock


class Watcher(Protocol):
    """Shows a training while it goes on."""

    def boards(self, total: int) -> Callable[[], None]:
        """Called before the boards are made; what it returns is called after each of them."""
        ...

    def progress(self, trainer: ModelTrainer) -> None:
        """Called a few times a second."""
        ...

    def report(self, trainer: ModelTrainer, tally: Tally) -> None:
        """Called after each report on the held-out boards."""
        ...


def train_model(config: TrainingConfig, out: Path, watcher: Watcher, *, resume: bool = False) -> dict[str, Any]:
    """Trains a model and writes its file; returns what its card says.

    Args:
      config: the training; a resumed one may differ from the checkpoint's in the fields `FREE` only.
      out: the file to write.
      watcher: is told how it goes.
      resume: go on from the checkpoint beside `out`.
    """
    if not resume and out.exists():
        raise BathysphereError(f"{out} exists. Choose another --out, or go on with its training: --resume.")
    if out.suffix != SUFFIX or not out.parent.is_dir():
        raise BathysphereError(f"{out} should be something{SUFFIX} in a folder that exists.")
    saved = _saved(config, out) if resume else None
    trainer = _prepare(config, watcher)
    if saved is not None:
        trainer.load_state_dict(saved)
    stopped_by = _run(trainer, out, watcher)
    return _finish(trainer, out, stopped_by)


def _saved(config: TrainingConfig, out: Path) -> Arrays:
    """Returns the checkpoint's state; refuses a config that would have led elsewhere."""
    before, arrays = read_checkpoint(out)
    names = [field.name for field in fields(config) if field.name not in FREE]
    if changed := [name for name in names if getattr(before, name) != getattr(config, name)]:
        raise BathysphereError(
            f"A resumed training keeps its settings, and {', '.join(changed)} would change. Start a new one for that."
        )
    return arrays


def _prepare(config: TrainingConfig, watcher: Watcher) -> ModelTrainer:
    """Makes the data and the trainer. Everything follows from the config, so none of it is saved."""
    data = config.data
    domain, tick = make_domain(data), watcher.boards(data.boards + data.held_out)
    starts, held_out = (
        np.repeat(make_boards(data, held_out=is_held_out, tick=tick), data.episodes, axis=0)
        for is_held_out in (False, True)
    )
    episodes = play_randomly(domain, starts, data.max_steps, np.random.default_rng([data.seed, 0]))
    seen = positions(domain, held_out, data.max_steps, np.random.default_rng([data.seed, 1]))
    return ModelTrainer(config, episodes, seen)


def _run(trainer: ModelTrainer, out: Path, watcher: Watcher) -> str:
    """Trains until a stop rule says so, and says which."""
    config, saved = trainer.config, time.perf_counter()
    while (reason := _stop_reason(trainer)) is None:
        until_report = config.report_every - trainer.num_updates % config.report_every
        trainer.train(min(_UPDATES_AT_ONCE, until_report, config.updates - trainer.num_updates))
        watcher.progress(trainer)
        if trainer.num_updates % config.report_every == 0:
            watcher.report(trainer, trainer.report())
        if time.perf_counter() - saved > _SAVE_SECONDS:
            write_checkpoint(out, trainer)
            saved = time.perf_counter()
    write_checkpoint(out, trainer)
    return reason


def _stop_reason(trainer: ModelTrainer) -> str | None:
    config, latest = trainer.config, trainer.last_report
    if trainer.num_updates >= config.updates:
        return "updates"
    if config.seconds is not None and trainer.seconds >= config.seconds:
        return "seconds"
    if config.frames_right is not None and latest is not None and latest.frames_right >= config.frames_right:
        return "frames_right"
    return None


def _finish(trainer: ModelTrainer, out: Path, stopped_by: str) -> dict[str, Any]:
    """Writes the model's file. What its card says was measured with weights as they are in the file."""
    world = BoardSpec.of(trainer.domain)
    weights = in_full(halved(weights_of(trainer.network)))
    file = ModelFile(trainer.config.model, world, {}, weights)
    tally = on_states(LearnedModel(file, trainer.domain), trainer.domain, trainer.held_out)
    versions = collect_versions()
    card = {
        **trainer.card(),
        "stopped_by": stopped_by,
        "held_out": tally.report(),
        "commit": versions["commit"],
        "machine": versions["machine"],
    }
    write_model(out, replace(file, card=card))
    return card


def checkpoint_file(out: Path) -> Path:
    """Returns where the checkpoint of the training of `out` is."""
    return out.with_suffix(f".training{SUFFIX}")


def write_checkpoint(out: Path, trainer: ModelTrainer) -> None:
    """Saves a training beside its model's file, atomically."""
    header = {"format": FORMAT, "config": asdict(trainer.config)}
    write_arrays(checkpoint_file(out), trainer.state_dict(), {_KEY: header})


def read_checkpoint(out: Path) -> tuple[TrainingConfig, Arrays]:
    """Returns the config and the state of the training beside a model's file."""
    path = checkpoint_file(out)
    if not path.is_file():
        raise BathysphereError(f"There is no {path} to go on from. Start the training without --resume.")
    (header,), arrays = read_arrays(path, (_KEY,), "the checkpoint of a model's training")
    if header.get("format") != FORMAT:
        raise BathysphereError(f"{path} has format {header.get('format')}; this version goes on from format {FORMAT}.")
    return read_as(TrainingConfig, translated(header.get("config"), OLD_NAMES, {}), "training"), arrays
