"""Polishing: an agent learns once more from the games its run remembers, with a rate that falls to zero.

While a run goes on its rate cannot fall to zero, and a rate above zero leaves weights that jump about. The games played
meanwhile do not matter for this, so that nothing has to be planned.
"""

from __future__ import annotations

import json
import shlex
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from bathysphere.domains import make_domain
from bathysphere.errors import BathysphereError
from bathysphere.learning.trainer import draw_batches, make_replay
from bathysphere.random_state import generator_state, restore_generator
from bathysphere.runs.card import train_command
from bathysphere.runs.checkpoint import Checkpoint, CheckpointStore
from bathysphere.runs.config import RunConfig
from bathysphere.runs.directory import RunDirectory
from bathysphere.runs.files import read_json, write_file, write_json, writing
from bathysphere.runs.serialise import config_hash
from bathysphere.saved_state import section
from bathysphere.values.batch import Arrays
from bathysphere.values.ensemble import Ensemble

_UPDATES_AT_ONCE = 20  # between two looks at the clock
_SAVE_SECONDS = 60.0  # what is lost at most if the machine dies
_AVERAGING = 0.999  # of the weights; they hardly move at the end
_KEY = "bathysphere.polish"

Watcher = Callable[[int, float], None]
"""Is told how many updates were made, and the loss of the latest."""


@dataclass(frozen=True)
class PolishConfig:
    """How an agent is polished. Adam makes the updates; all else is as in the run."""

    updates: int = 4000
    """Updates until the learning rate is zero."""
    batch_size: int = 192
    """Entries per update."""
    learning_rate: float = 5e-4
    """The highest; it rises to it at first."""

    def __post_init__(self) -> None:
        if self.updates < 1 or self.batch_size < 1 or self.learning_rate <= 0:
            raise BathysphereError(
                f"updates is {self.updates}, batch_size {self.batch_size} and learning_rate {self.learning_rate}; "
                "expected at least 1, at least 1, and more than 0."
            )


def polish(run_dir: Path, out: Path, config: PolishConfig, watch: Watcher) -> dict[str, Any]:
    """Makes a new run of a run's newest checkpoint, with polished values; returns what its `polish.json` holds.

    The run itself stays as it is. If the same was begun before and interrupted, it goes on from there.

    Args:
      run_dir: the run; its values must be a network.
      out: directory of the new run.
      config: how.
      watch: is called several times a minute.
    """
    source = RunDirectory.open(run_dir)
    if source.is_running():
        raise BathysphereError(f"{run_dir} is being trained right now. Wait until it ends, or stop it first.")
    run = source.load_config()
    if run.values.network == "linear" or run.values.num_towers:
        raise BathysphereError(f"{run_dir} has values that cannot be polished: expected an mlp or a cnn.")
    checkpoint = source.checkpoint_store().load()
    if checkpoint is None:
        raise BathysphereError(f"{run_dir} has no checkpoint yet. Train it: bathysphere train --resume {run_dir}")
    began = _begin(run, out, config, checkpoint)
    weights, seconds = began.finish(watch)
    return _write(source, run, out, config, checkpoint, weights, seconds)


class _Polishing:
    """Updates from a checkpoint's games, and what is needed to go on with them."""

    def __init__(self, run: RunConfig, config: PolishConfig, checkpoint: Checkpoint, file: Path) -> None:
        self._config, self._file = config, file
        self._domain = make_domain(run.domain)
        self._learning = replace(run.learning, batch_size=config.batch_size)
        self._replay = make_replay(self._domain, run.search, run.learning, run.values.num_members)
        self._replay.load_state_dict(section(checkpoint.arrays, "replay."))
        self._rng = np.random.default_rng([run.seed, checkpoint.env_steps])
        before = _values(run, self._domain.observation, checkpoint)
        optimiser = replace(
            run.optimiser,
            name="adam",
            learning_rate=config.learning_rate,
            half_life=None,
            anneal_over=config.updates,
            averaging=_AVERAGING,
        )
        self._values = Ensemble(run.values, optimiser, self._domain.observation, 0, run.device)
        self._values.load_weights(before.weights())
        self._done, self._seconds = 0, 0.0
        # What an interrupted polishing has to have in common with this one.
        self._identity = {**asdict(config), "config_hash": config_hash(run), "env_steps": checkpoint.env_steps}

    def finish(self, watch: Watcher) -> tuple[Arrays, float]:
        """Makes the updates that are left; returns the weights, and the seconds all updates took."""
        saved = looked = time.perf_counter()
        while self._done < self._config.updates:
            num = min(_UPDATES_AT_ONCE, self._config.updates - self._done)
            batch = draw_batches(self._replay, self._domain, self._learning, num, self._rng)
            loss = self._values.update_many(batch).loss
            self._done += num
            now = time.perf_counter()
            self._seconds += now - looked
            looked = now
            watch(self._done, loss)
            if now - saved > _SAVE_SECONDS:
                self._save()
                saved = time.perf_counter()
        return self._values.weights(), self._seconds

    def _save(self) -> None:
        from safetensors.numpy import save

        arrays = {f"values.{name}": array for name, array in self._values.state_dict().items()}
        arrays["rng"] = generator_state(self._rng)
        header = {"identity": self._identity, "done": self._done, "seconds": self._seconds}
        write_file(self._file, save(arrays, metadata={_KEY: json.dumps(header)}))

    def load(self) -> None:
        """Goes on from what an earlier process saved."""
        from safetensors import SafetensorError, safe_open

        try:
            with safe_open(self._file, framework="numpy") as file:
                header = json.loads((file.metadata() or {})[_KEY])
                arrays = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118 (not a dict)
        except (OSError, SafetensorError, KeyError, ValueError) as error:
            raise BathysphereError(f"{self._file} is damaged ({error}). Delete it to begin again.") from error
        if header["identity"] != self._identity:
            raise BathysphereError(
                f"{self._file.parent} holds a polishing with other settings, or of another checkpoint. Repeat it as it "
                "was, delete the folder, or choose another --out."
            )
        self._values.load_state_dict(section(arrays, "values."))
        restore_generator(self._rng, arrays["rng"])
        self._done, self._seconds = header["done"], header["seconds"]


def _begin(run: RunConfig, out: Path, config: PolishConfig, checkpoint: Checkpoint) -> _Polishing:
    file = out / "polishing.safetensors"
    is_begun = file.is_file()
    if not is_begun and out.exists() and (not out.is_dir() or any(out.iterdir())):
        raise BathysphereError(f"{out} exists and is not an empty folder. Choose another --out.")
    with writing(out, "Choose another --out."):
        out.mkdir(parents=True, exist_ok=True)
    polishing = _Polishing(run, config, checkpoint, file)
    if is_begun:
        polishing.load()
    return polishing


def _write(
    source: RunDirectory,
    run: RunConfig,
    out: Path,
    config: PolishConfig,
    checkpoint: Checkpoint,
    weights: Arrays,
    seconds: float,
) -> dict[str, Any]:
    """Writes the new run: the old one with other weights. It could be trained further."""
    values = _values(run, make_domain(run.domain).observation, checkpoint)
    values.load_weights(weights)
    rest = {name: array for name, array in checkpoint.arrays.items() if not name.startswith("values.")}
    arrays = rest | {f"values.{name}": array for name, array in values.state_dict().items()}
    target = RunDirectory(out)
    with writing(out, "Free some space, then repeat the command: it goes on where it was."):
        target.checkpoints.mkdir(exist_ok=True)
    CheckpointStore(target.checkpoints, config_hash(run)).save(
        arrays, checkpoint.env_steps, checkpoint.seconds + seconds
    )
    for name in ("versions_file", "metrics_file", "model_file"):
        if (old := getattr(source, name)).is_file():
            write_file(getattr(target, name), old.read_bytes())
    told = {
        "command": f"{train_command(run)}, then {polish_command(config)}",
        "env_steps": checkpoint.env_steps,
        "seconds": seconds,
        **asdict(config),
    }
    write_json(target.polish_file, told)
    target.save_config(run)  # last: a directory with a config is a run
    (out / "polishing.safetensors").unlink(missing_ok=True)
    return told


def polish_command(config: PolishConfig) -> str:
    """Returns the command that polishes so, of whatever run."""
    words = ["bathysphere", "polish", "RUN"]
    for name, value in asdict(config).items():
        if value != getattr(PolishConfig(), name):
            words += [f"--{name.replace('_', '-')}", str(value)]
    return shlex.join(words)


def polished_with(directory: RunDirectory) -> str | None:
    """Returns the commands that made a polished run; None if it is a run like others."""
    return str(read_json(directory.polish_file)["command"]) if directory.polish_file.is_file() else None


def _values(run: RunConfig, observation: Any, checkpoint: Checkpoint) -> Ensemble:
    values = Ensemble(run.values, run.optimiser, observation, run.seed, run.device)
    values.load_state_dict(section(checkpoint.arrays, "values."))
    return values
