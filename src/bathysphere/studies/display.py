"""Watching a study: one live table in a terminal, a line for every finished run anywhere else."""

from __future__ import annotations

import time
from collections.abc import Sequence
from types import TracebackType
from typing import Self

from rich.console import Group
from rich.live import Live
from rich.table import Table
from rich.text import Text

from bathysphere.errors import printable
from bathysphere.runs.display import duration
from bathysphere.studies.scheduler import Job
from bathysphere.studies.study import Study, interval_text, number_text
from bathysphere.terminal import Terminal

_REFRESH_SECONDS = 0.5


class StudyDisplay:
    """Shows how far a study is, and its result so far. Use it as a context."""

    def __init__(self, study: Study, num_processes: int, console: Terminal) -> None:
        self._study, self._num_processes, self._console = study, num_processes, console
        self._live = Live(console=console, auto_refresh=False) if console.is_terminal else None
        self._shown = 0.0
        self._told: set[int] = set()

    def __enter__(self) -> Self:
        if self._live is not None:
            self._live.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: BaseException | TracebackType | None) -> None:
        if self._live is not None:
            self._live.stop()

    def update(self, jobs: Sequence[Job]) -> None:
        """Shows the table, or tells of runs that ended since the last time."""
        is_over = all(job.state in ("finished", "failed") for job in jobs)
        if self._live is None:
            self._tell(jobs)
        elif is_over or time.monotonic() - self._shown >= _REFRESH_SECONDS:
            self._shown = time.monotonic()
            self._live.update(study_table(self._study, jobs, self._num_processes), refresh=True)

    def _tell(self, jobs: Sequence[Job]) -> None:
        for number, job in enumerate(jobs):
            if job.state in ("finished", "failed") and number not in self._told:
                self._told.add(number)
                left = time_left(jobs, self._num_processes)
                self._console.print(
                    f"[{len(self._told)}/{len(jobs)}] {job.trial.folder}: {job.error or 'finished'}"
                    + ("" if left is None else f"; about {duration(left)} left"),
                    soft_wrap=True,
                )


def study_table(study: Study, jobs: Sequence[Job], num_processes: int) -> Group:
    """Draws a row for each setting: runs waiting, running, finished and failed, and its numbers so far."""
    table = Table(title=study.title, title_justify="left", title_style="bold", box=None, header_style="dim")
    table.add_column("setting")
    for name in ("waiting", "running", "finished", "failed"):
        table.add_column(name, justify="right")
    rows = study.summarise([job.record() for job in jobs])
    metrics = list(dict.fromkeys(row.metric for row in rows))
    for metric in metrics:
        table.add_column(metric.title, justify="right", max_width=26)
    results = {
        (row.setting.name, row.metric.name): f"{number_text(row.ours.value, row.metric.kind)} "
        f"({interval_text(row.ours, row.metric.kind)})"
        if row.ours.n
        else "–"
        for row in rows
    }
    for setting in study.settings:
        mine = [job for job in jobs if job.trial.setting == setting.name]
        counts = [sum(job.state == s for job in mine) for s in ("waiting", "running", "finished", "failed")]
        styles = ("dim", "cyan", "green", "bold red")
        shown = [Text(str(count), style=s if count else "dim") for count, s in zip(counts, styles, strict=True)]
        cells = [results.get((setting.name, metric.name), "") for metric in metrics]
        table.add_row(setting.title, *shown, *cells)
    left = time_left(jobs, num_processes)
    state = "time left: not known yet" if left is None else f"time left: about {duration(left)}"
    errors = [Text(printable(f"{job.trial.folder}: {job.error}"), style="red") for job in jobs if job.state == "failed"]
    return Group(table, Text(state, style="dim"), *errors[-5:])


def time_left(jobs: Sequence[Job], num_processes: int) -> float | None:
    """Estimates the seconds left from the runs that are finished, setting by setting; None before the first."""
    seconds: dict[str, list[float]] = {}
    for job in jobs:
        if job.result is not None:
            seconds.setdefault(job.trial.setting, []).append(job.result["wall_seconds"])
    if not seconds:
        return None
    means = {setting: sum(times) / len(times) for setting, times in seconds.items()}
    usual = sum(means.values()) / len(means)
    total = 0.0
    for job in jobs:
        if job.state in ("waiting", "running"):
            gone = time.monotonic() - job.began if job.state == "running" else 0.0
            total += max(means.get(job.trial.setting, usual) - gone, 0.0)
    return total / num_processes
