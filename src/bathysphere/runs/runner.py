"""Running a run: the loop around the trainer, with stop rules, checkpoints, metrics and a result."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import asdict
from pathlib import Path
from typing import Any, Protocol

from bathysphere import compiling
from bathysphere.config.convert import config_hash
from bathysphere.config.run import RunConfig
from bathysphere.domains.observing import Observer
from bathysphere.errors import BathysphereError, room_for
from bathysphere.learning.learner import Learner
from bathysphere.learning.progress import Progress
from bathysphere.runs.build import make_trainer, memory_settings
from bathysphere.runs.callbacks import OnEpisode
from bathysphere.runs.directory import RunDirectory
from bathysphere.runs.lineage import Lineage
from bathysphere.runs.metrics import WORKER_COLUMNS, Meter, MetricsWriter, Row, last_row, read_rows
from bathysphere.runs.observers import Observers
from bathysphere.runs.report import report_on
from bathysphere.runs.workers import Workers, check_workers
from bathysphere.signals import ENDING, listening
from bathysphere.storage.checkpoint import Checkpoint, CheckpointStore
from bathysphere.storage.files import read_json, write_json
from bathysphere.storage.state import prefixed, require, section
from bathysphere.storage.versions import collect_versions

_DISPLAY_SECONDS = 0.2  # between two looks of the display


class Display(Protocol):
    """Shows a run while it goes on."""

    def start(self, config: RunConfig, directory: Path) -> None:
        """Called once, before anything happens."""
        ...

    def update(self, progress: Progress, seconds: float, row: Row | None) -> None:
        """Called a few times a second with the latest row of the metrics."""
        ...

    def stop(self) -> None:
        """Called once, when training is over or has failed."""
        ...


def run(
    config: RunConfig,
    path: Path,
    display: Display | None = None,
    *,
    pictures: bool = True,
    observers: Sequence[Observer] = (),
    on_episode: OnEpisode | None = None,
    workers: Workers | None = None,
) -> dict[str, Any]:
    """Trains from the beginning in a new directory; returns what `result.json` holds.

    Args:
      config: what to train.
      path: the run directory, new or empty.
      display: shows progress.
      pictures: whether to draw pictures when training ends.
      observers: follow the run besides those that the domain offers.
      on_episode: called with each finished episode and the run's progress.
      workers: who plays, if play is in blocks; this process if not given. The run does not depend on it.
    """
    check_workers(config, workers)
    if config.workers > 1:
        raise BathysphereError(
            f"The config has workers {config.workers}: planners that share a batch, as in runs of earlier versions, "
            "which can be resumed. New runs use many cores in blocks, whose players are no part of the config. Leave "
            "it out, and say --workers on the command line or train(..., workers=...)."
        )
    try:
        directory = RunDirectory.create(path, config)
    except BaseException:
        with suppress(OSError):
            path.rmdir()  # if it is empty: then it was made for this run
        raise
    return _Run(directory, config, display, observers, on_episode, workers).go(pictures=pictures)


def resume(
    path: Path,
    display: Display | None = None,
    *,
    config: RunConfig | None = None,
    fallback: bool = False,
    pictures: bool = True,
    observers: Sequence[Observer] = (),
    on_episode: OnEpisode | None = None,
    workers: Workers | None = None,
) -> dict[str, Any]:
    """Continues a run from its newest checkpoint, or from the beginning if it never came to one.

    Args:
      path: the run directory.
      display: shows progress.
      config: the run's own with other `steps`, `stop`, `log_every` or `checkpoint`; nothing else may differ.
      fallback: use the last good checkpoint if the newest is damaged.
      pictures: whether to draw pictures when training ends.
      observers: follow the run besides those that the domain offers; those that it began with.
      on_episode: called with each finished episode and the run's progress.
      workers: who plays, if play is in blocks; this process if not given. The run does not depend on it.
    """
    directory = RunDirectory.open(path)
    config = directory.load_config() if config is None else config
    check_workers(config, workers)
    run = _Run(directory, config, display, observers, on_episode, workers)
    return run.go(pictures=pictures, resumed=True, fallback=fallback)


class _Run:
    """One process's part of a run."""

    def __init__(
        self,
        directory: RunDirectory,
        config: RunConfig,
        display: Display | None,
        observers: Sequence[Observer],
        on_episode: OnEpisode | None,
        workers: Workers | None,
    ) -> None:
        self.directory, self.config, self.display = directory, config, display
        self.given, self.on_episode, self.workers = observers, on_episode, workers
        self.store = CheckpointStore(directory.checkpoints, config_hash(config), config.checkpoint.keep)
        self.seconds_before = 0.0  # of training by earlier processes

    def go(self, *, pictures: bool, resumed: bool = False, fallback: bool = False) -> dict[str, Any]:
        """Trains until a stop rule or a signal says so; returns the result."""
        with self.directory.lock(), _signals() as interrupted:
            try:
                self._prepare(fallback)
            except BaseException:
                if not resumed:
                    self.directory.remove()
                raise
            if resumed:
                self.directory.save_config(self.config)
                write_json(self.directory.versions_file, collect_versions())
            self.directory.result_file.unlink(missing_ok=True)
            with self._shown(), room_for("training", memory_settings(self.config)):
                self._began, self._compiled = time.perf_counter(), compiling.seconds()
                stopped_by = self._train(interrupted)
            result = self._result(stopped_by)
            report = report_on(result, read_rows(self.directory.metrics_file), self.config)
            result["report"] = [remark._asdict() for remark in report]
            if pictures:
                from bathysphere.runs.pictures import draw_pictures

                draw_pictures(self.directory, self.trainer, self.observers.pictures())
            self.observers.raise_failure()  # of what it tells at the end
            write_json(self.directory.result_file, result)
        return result

    def _prepare(self, fallback: bool) -> None:
        """Builds the parts and brings them to the newest checkpoint."""
        checkpoint = self.store.load(fallback=fallback)
        self.trainer: Learner = make_trainer(
            self.config, is_new=checkpoint is None, run_dir=self.directory.path, workers=self.workers
        )
        if self.config.start_from is not None and checkpoint is None:
            write_json(self.directory.origin_file, asdict(Lineage.of(self.config.start_from)))
        self.meter = Meter(self.config.log_every)
        self.observers = Observers(self.trainer, self.given, self.on_episode)
        if checkpoint is not None:
            self._restore(checkpoint)
        else:
            self.observers.record([])
        self.meter.start(self.trainer, self.seconds_before)
        self.writer = MetricsWriter(self.directory.metrics_file, self.directory.tensorboard, self.meter.last_row)

    def _restore(self, checkpoint: Checkpoint) -> None:
        """Brings all parts to a checkpoint, or refuses it: its fingerprints say that it is whole, not who wrote it."""
        arrays, env_steps = checkpoint.arrays, checkpoint.env_steps
        try:
            self.trainer.load_state_dict(arrays)
            self.meter.load_state_dict(section(arrays, "meter."), env_steps)
            self.observers.load_state_dict(arrays)
            require(self.trainer.progress.env_steps == env_steps, "it is of another step than it says")
        except (ArithmeticError, LookupError, RuntimeError, TypeError, ValueError, BathysphereError) as error:
            told = error if isinstance(error, BathysphereError) else f"{type(error).__name__}: {error}."
            raise BathysphereError(f"The checkpoint of step {env_steps:,} cannot be used. {told}") from error
        self.seconds_before = checkpoint.seconds

    def _train(self, interrupted: threading.Event) -> str:
        trainer, progress = self.trainer, self.trainer.progress
        saved = shown = time.perf_counter()
        row: Row | None = None
        try:
            while (reason := self._stop_reason(interrupted)) is None:
                if (episodes := trainer.advance()) is not None:
                    self.observers.record(episodes)
                    if row_due := self.meter.record(trainer, episodes, self._seconds()):
                        row = self._write(row_due)
                now = time.perf_counter()
                if self.display and now - shown >= _DISPLAY_SECONDS:
                    self.display.update(progress, self._seconds(), row)
                    shown = now
                if now - saved >= self.config.checkpoint.seconds:
                    self._save()
                    saved = time.perf_counter()
            if row_due := self.meter.end(trainer, self._seconds()):
                row = self._write(row_due)
            self._save()
            self.observers.raise_failure()
            if self.display:
                self.display.update(progress, self._seconds(), row)
        finally:
            self.writer.close()
            trainer.close()
        return reason

    def _write(self, row: Row) -> Row:
        """Writes a row with the columns of observers and models, and returns it."""
        row = row | self.observers.columns() | self._model_errors()
        self.writer.write(row)
        return row

    def _stop_reason(self, interrupted: threading.Event) -> str | None:
        progress, stop = self.trainer.progress, self.config.stop
        if interrupted.is_set():
            return "interrupted"
        if self.observers.wants_stop or self.observers.failure:
            return "callback"
        if stop.on_first_win and progress.wins:
            return "first_win"
        if stop.on_solved and progress.solved_step is not None:
            return "solved"
        if stop.win_rate is not None and progress.episodes >= 1000 and progress.win_rate(1000) >= stop.win_rate:
            return "win_rate"
        if stop.mean_return is not None and progress.has_return(stop.mean_return):
            return "mean_return"
        if stop.episodes is not None and progress.episodes >= stop.episodes:
            return "episodes"
        if progress.env_steps >= self.config.steps:
            return "steps"
        if stop.seconds is not None and self._seconds() >= stop.seconds:
            return "seconds"
        return None

    def _save(self) -> None:
        if not self.directory.config_file.exists():
            raise BathysphereError(
                f"{self.directory.path} is gone: it was moved or deleted while the run went on, which ends here. A run "
                "that was moved can go on where it is now, with --resume."
            )
        self.writer.flush()
        arrays = {
            **self.trainer.state_dict(),
            **prefixed("meter.", self.meter.state_dict()),
            **self.observers.state_dict(),
        }
        self.store.save(arrays, self.trainer.progress.env_steps, self._seconds())

    def _model_errors(self) -> dict[str, Any]:
        """Returns how often a learned model was wrong about a step so far; nothing without one."""
        if self.config.model is None:
            return {}
        work = self.trainer.work
        errors = {f"model_{kind}": count for kind, count in work.model_errors.items()}
        return errors | {"model_unknown": work.unknown_steps}

    def _seconds(self) -> float:
        """Returns the seconds of training, without those in which code was compiled: they come once a machine."""
        return self.seconds_before + time.perf_counter() - self._began - (compiling.seconds() - self._compiled)

    def _result(self, stopped_by: str) -> dict[str, Any]:
        progress, seconds = self.trainer.progress, self._seconds()
        versions = read_json(self.directory.versions_file)
        row = last_row(self.directory.metrics_file) or {}
        return {
            "preset": self.config.preset,
            "seed": self.config.seed,
            "env_steps": progress.env_steps,
            "imagined_steps": progress.imagined_steps,
            "episodes": progress.episodes,
            "wins": progress.wins,
            "updates": progress.updates,
            "first_solved_step": progress.first_solved_step,
            "solved_step": progress.solved_step,
            "win_rate_100": progress.win_rate(100),
            "win_rate_1000": progress.win_rate(1000),
            "return_mean_50": progress.mean_return,
            "return_best": progress.best_return,
            "return_worst": progress.worst_return,
            **self.observers.totals(),
            **self._model_errors(),
            **{name: row[name] for name in ("blocks", "staleness", *WORKER_COLUMNS) if name in row},
            "wall_seconds": seconds,
            "env_steps_per_second": progress.env_steps / seconds,
            "stopped_by": stopped_by,
            "commit": versions.get("commit"),
            "machine": versions.get("machine"),
            "processor": versions.get("processor"),
            "run_dir": str(self.directory.path),
        }

    @contextmanager
    def _shown(self) -> Iterator[None]:
        if self.display is None:
            yield
            return
        self.display.start(self.config, self.directory.path)
        try:
            yield
        finally:
            self.display.stop()


@contextmanager
def _signals() -> Iterator[threading.Event]:
    """Turns SIGINT, SIGHUP and SIGTERM into an event; the second of them acts as usual.

    An exception would not do: one that is raised while LLVM compiles is lost, and the run would go on.
    """
    interrupted = threading.Event()

    def listen(number: int, frame: object) -> None:
        interrupted.set()
        restore()

    with listening(listen, ENDING) as restore:
        yield interrupted
