"""Running the runs of a study side by side."""

from __future__ import annotations

import shutil
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from types import MappingProxyType
from typing import Any, Literal, Protocol

from bathysphere.config.convert import config_hash, differences, to_dict
from bathysphere.errors import BathysphereError
from bathysphere.runs.directory import RunDirectory
from bathysphere.runs.metrics import read_rows
from bathysphere.storage.files import read_json
from bathysphere.studies.processes import ERRORS, Launch, ProcessHere, RunProcess
from bathysphere.studies.study import Record, Trial

State = Literal["waiting", "running", "finished", "failed"]

_LOOK_SECONDS = 0.1  # between two looks at the processes


@dataclass
class Job:
    """A run and how far it is."""

    trial: Trial
    path: Path
    pictures: bool = False
    towers: tuple[Job, ...] = ()  # to be finished first
    state: State = "waiting"
    result: dict[str, Any] | None = None  # what result.json holds, its evaluation if there is one, and its curve
    row: Record | None = None  # its row among the results, if it is finished and its directory is gone
    error: str | None = None
    process: RunProcess | None = None
    began: float = 0.0

    def record(self) -> Record:
        """Returns the run's row of the raw results."""
        if self.row is not None:
            return self.row
        outcome = {k: v for k, v in (self.result or {}).items() if k not in ("seed", "run_dir")}
        return {
            **self.trial.identity(),
            "state": self.state,
            "error": self.error,
            "config_hash": config_hash(self.trial.config),
            "steps": self.trial.config.steps,
            **outcome,
        }


class Watcher(Protocol):
    """Shows a study while it goes on."""

    def update(self, jobs: Sequence[Job]) -> None:
        """Called about ten times a second."""
        ...


def plan(
    trials: Sequence[Trial],
    folder: Path,
    pictures: Sequence[tuple[str, str]] = (),
    rows: Mapping[Path, Record] = MappingProxyType({}),
) -> list[Job]:
    """Returns a job for every trial; those that are finished in `folder` or have a row of results are recognised.

    Args:
      trials: what to run; those that others are built on come before these.
      folder: where the runs are.
      pictures: (setting, case) whose first seed draws pictures.
      rows: results of finished runs, by their place in the folder. A row of the same config stands for a run whose
        directory is gone, unless another run is to be built on it.

    Raises:
      BathysphereError: if the folder holds a run with other settings under a trial's name.
    """
    jobs: dict[Path, Job] = {}
    foundations = {tower for trial in trials for tower in trial.towers}
    for trial in trials:
        towers = tuple(jobs[tower] for tower in trial.towers)
        if towers:
            trial = replace(trial, config=replace(trial.config, towers=tuple(str(job.path) for job in towers)))
        is_drawn = trial.seed == 0 and (trial.setting, trial.case.name) in pictures
        job = Job(trial, folder / trial.folder, is_drawn, towers)
        if job.path.exists():
            job.result = _finished_result(job)
            job.state = "waiting" if job.result is None else "finished"
        elif not (trial.towers or trial.folder in foundations):
            row = rows.get(trial.folder)
            if row is not None and row["config_hash"] == config_hash(trial.config):
                job.row, job.state = row, "finished"
        jobs[trial.folder] = job
    return list(jobs.values())


def run_all(jobs: Sequence[Job], num_processes: int, watcher: Watcher, launch: Launch = ProcessHere) -> None:
    """Runs what is not finished. A run that fails does not stop the others.

    On an interrupt all processes save and stop before it is passed on, and `plan` continues from there.

    Mutates: jobs.
    """
    waiting = [job for job in jobs if job.state == "waiting"]
    running: list[Job] = []
    with _stopping(running):
        while waiting or running:
            while len(running) < num_processes and (ready := _next_ready(waiting)) is not None:
                waiting.remove(ready)
                running.append(ready)  # first: an interrupt must find it
                _start(ready, launch)
            for job in [job for job in running if job.process is not None and job.process.poll() is not None]:
                _close(job)
                running.remove(job)
            for job in [job for job in waiting if _fails_with_a_tower(job)]:
                waiting.remove(job)
            watcher.update(jobs)
            time.sleep(_LOOK_SECONDS)
    watcher.update(jobs)


def _fails_with_a_tower(job: Job) -> bool:
    """Tells whether a run that this one is built on has failed; then so has this one.

    Mutates: job.
    """
    failed = [str(tower.trial.folder) for tower in job.towers if tower.state == "failed"]
    if failed:
        job.state, job.error = "failed", f"it is built on {failed[0]}, which failed"
    return bool(failed)


def _next_ready(waiting: Sequence[Job]) -> Job | None:
    """Returns the first run for which all that it is built on is finished."""
    return next((job for job in waiting if all(tower.state == "finished" for tower in job.towers)), None)


def _finished_result(job: Job) -> dict[str, Any] | None:
    """Returns the outcome of a run that needs nothing more; None if it should be continued."""
    directory = RunDirectory(job.path)
    if not directory.config_file.is_file():
        return None
    old, new = directory.load_config(), job.trial.config
    changed = differences(old, new)
    if not changed and (old.steps > new.steps or to_dict(old)["stop"] != to_dict(new)["stop"]):
        changed = ["the budget"]
    if changed:
        raise BathysphereError(
            f"{job.path} holds a run with other settings ({', '.join(changed)}). "
            "Choose another --out, or remove that folder."
        )
    return None if old.steps < new.steps else _outcome(job)


def _outcome(job: Job) -> dict[str, Any] | None:
    """Returns what a run has left behind that is over and evaluated; None if it is not."""
    directory, trial = RunDirectory(job.path), job.trial
    result = directory.load_result()
    if result is None or result["stopped_by"] == "interrupted":
        return None
    if trial.evaluation:
        played = read_json(directory.evaluation_file) if directory.evaluation_file.is_file() else {}
        if played.get("episodes") != trial.evaluation:
            return None
        result |= {f"evaluation_{name}": played[name] for name in ("episodes", "wins", "win_rate")}
    if trial.curve:
        rows = read_rows(directory.metrics_file)
        result["curve"] = {name: [row[name] for row in rows] for name in trial.curve}
    return result


def _start(job: Job, launch: Launch) -> None:
    directory = RunDirectory(job.path)
    if directory.config_file.is_file():
        directory.result_file.unlink(missing_ok=True)
        directory.evaluation_file.unlink(missing_ok=True)
        directory.save_config(job.trial.config)  # the budget may have grown
    else:
        if job.path.exists():  # killed while it was made: there is no run in it yet
            shutil.rmtree(job.path)
        RunDirectory.create(job.path, job.trial.config)
    options = ["--pictures"] if job.pictures else []
    if job.trial.evaluation:
        options += ["--evaluate", str(job.trial.evaluation)]
    job.process = launch(job.path, options)
    job.state, job.began = "running", time.monotonic()


def _close(job: Job) -> None:
    """Takes note of how a process ended."""
    assert job.process is not None
    job.process.stop()
    code, job.process = job.process.wait(), None
    # The outcome is the last thing a run writes: with it the run is over, however its process ended.
    result = _outcome(job)
    errors = job.path / ERRORS
    lines = errors.read_text(encoding="utf-8", errors="replace").split("\n")
    said = next((line.strip() for line in reversed(lines) if line.strip()), "")
    if result is None:
        job.state = "failed"
        job.error = said or (f"killed by signal {-code}" if code < 0 else "stopped from outside")
    else:
        job.state, job.result = "finished", result
        errors.unlink()


@contextmanager
def _stopping(running: list[Job]) -> Iterator[None]:
    """Lets all processes save and stop if something interrupts us; kills them at the second interrupt.

    Mutates: running; a run that was not finished waits again.
    """
    try:
        yield
    except BaseException:
        started = [(job, job.process) for job in running if job.process is not None]
        try:
            for _, process in started:
                process.stop()
            for job, process in started:
                process.wait()
                _close(job)
                job.state = "finished" if job.state == "finished" else "waiting"
        except BaseException:
            for _, process in started:
                process.kill()
                process.wait()
            raise
        raise
