"""The folder of runs that a studio shows: what is in it now, and where a name in it leads."""

from __future__ import annotations

import threading
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from bathysphere.config.convert import to_dict
from bathysphere.errors import BathysphereError
from bathysphere.runs.directory import RunDirectory
from bathysphere.runs.listing import describe, run_directories
from bathysphere.runs.metrics import Row, sample_rows
from bathysphere.storage.plain import flat

_FRESH_SECONDS = 1.0  # for so long a look at the folder serves everybody
_MOST_RUNS = 2000
_MOST_CURVES = 64  # kept in memory
_POINTS = 400  # of a curve
STUDY_PLACES = ("", "*/", "*/*/")  # how deep studies may lie


@dataclass(frozen=True)
class RunSummary:
    """A run as lists show it."""

    name: str  # its folder, as seen from the folder of all
    world: str
    preset: str
    seed: int | None
    state: str  # running, unfinished, damaged, or what it was stopped by
    env_steps: int
    total_steps: int | None
    episodes: int
    win_rate: float | None
    solved_step: int | None
    steps_per_second: float | None
    settings: dict[str, Any] = field(repr=False)  # the config, flat: search.passes and the like

    @property
    def is_finished(self) -> bool:
        """Whether it has ended by a rule of its own."""
        return self.state not in ("running", "unfinished", "interrupted", "damaged")


class RunsFolder:
    """All runs in a folder, one and two levels deep, and those of studies in it. Only what has changed is read again.

    Args:
      path: the folder.
    """

    def __init__(self, path: Path) -> None:
        self.path = path.resolve()
        self._known: dict[Path, tuple[Any, RunSummary]] = {}
        self._curves: dict[Path, tuple[Any, list[Row]]] = {}
        self._looked, self._runs = -_FRESH_SECONDS, list[RunSummary]()
        self._lock = threading.Lock()

    def runs(self) -> list[RunSummary]:
        """Returns the runs as they are now, or were a moment ago."""
        with self._lock:
            if time.monotonic() - self._looked >= _FRESH_SECONDS:
                paths = self._paths()[:_MOST_RUNS]
                self._known = {path: self._look(path) for path in paths}
                self._runs = [summary for _, summary in self._known.values()]
                self._looked = time.monotonic()
            return self._runs

    def find(self, name: str) -> RunSummary:
        """Returns the run called `name`."""
        self.directory(name)
        for run in self.runs():
            if run.name == name:
                return run
        raise BathysphereError(f"The run {name} is no longer there.")

    def directory(self, name: str) -> RunDirectory:
        """Returns the directory of the run called `name`.

        Raises:
          BathysphereError: if there is none, or the name leads out of the folder.
        """
        return RunDirectory.open(self.inside(name))

    def inside(self, name: str) -> Path:
        """Returns what `name` leads to, seen from the folder; refuses what is not inside it."""
        try:
            path = (self.path / name).resolve()
        except (OSError, ValueError) as error:
            raise BathysphereError("This name cannot be a file's.") from error
        if name == self.path.name and (self.path / "config.json").is_file():
            path = self.path
        if not path.is_relative_to(self.path):
            raise BathysphereError(f"{name} is not inside {self.path}, and the studio shows nothing else.")
        if not path.exists():
            raise BathysphereError(f"{name} is no longer in {self.path}, or never was.")
        return path

    def rows(self, name: str) -> list[Row]:
        """Returns the metrics of a run, thinned out to what a curve needs."""
        file = self.directory(name).metrics_file
        mark = _mark(file)
        known = self._curves.pop(file, None)
        rows = known[1] if known is not None and known[0] == mark else sample_rows(file, _POINTS)
        self._curves[file] = (mark, rows)  # as the last one
        while len(self._curves) > _MOST_CURVES:
            self._curves.pop(next(iter(self._curves)))
        return rows

    def _paths(self) -> list[Path]:
        """Returns the runs of the folder, and after them those of the studies in it."""
        of_studies = [file.parent for place in STUDY_PLACES for file in self.path.glob(f"{place}runs/*/*/config.json")]
        return list(dict.fromkeys([*run_directories(self.path), *sorted(of_studies)]))

    def _look(self, path: Path) -> tuple[Any, RunSummary]:
        """Returns a run's files as they are, and its summary."""
        files = ("config.json", "result.json", "metrics.jsonl")
        mark = tuple(_mark(path / file) for file in files)
        known = self._known.get(path)
        if known is not None and known[0] == mark and known[1].state not in ("running", "unfinished"):
            return known
        name = path.name if path == self.path else path.relative_to(self.path).as_posix()
        return mark, summarise(name, path)


def summarise(name: str, path: Path) -> RunSummary:
    """Describes the run in `path`; one that cannot be read is called damaged."""
    directory = RunDirectory(path)
    settings: dict[str, Any] = {}
    try:
        config = directory.load_config()
        about = describe(directory, config)
        settings = flat(to_dict(config))
    except (BathysphereError, OSError, KeyError, TypeError, ValueError):
        about = {"state": "damaged", "preset": "?"}
    world = settings.get("domain.world") or settings.get("domain.id") or settings.get("domain.name")
    return RunSummary(
        name=name,
        world=str(world or "?"),
        preset=str(about.get("preset", "?")),
        seed=about.get("seed"),
        state=str(about["state"]),
        env_steps=about.get("env_steps") or 0,
        total_steps=settings.get("steps"),
        episodes=about.get("episodes") or 0,
        win_rate=about.get("win_rate_100"),
        solved_step=about.get("solved_step"),
        steps_per_second=about.get("env_steps_per_second"),
        settings=settings,
    )


def setting_differences(runs: list[RunSummary]) -> list[tuple[str, list[Any]]]:
    """Returns the settings in which runs differ, by name, with the value in each run; None where a run lacks it."""
    names = dict.fromkeys(name for run in runs for name in run.settings)
    told = [(name, [run.settings.get(name) for run in runs]) for name in names]
    return [(name, values) for name, values in told if any(value != values[0] for value in values)]


def _mark(file: Path) -> Any:
    """Returns what changes when a file does."""
    try:
        about = file.stat()
    except OSError:
        return None
    return about.st_mtime_ns, about.st_size, about.st_ino
