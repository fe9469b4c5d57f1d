"""Running what is not finished of a study in its folder; its table, figures and report follow as runs end."""

from __future__ import annotations

import functools
import os
import signal
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, nullcontext

from bathysphere.errors import BathysphereError
from bathysphere.scale.cluster import Cluster
from bathysphere.signals import ENDING, listening
from bathysphere.studies.display import StudyDisplay
from bathysphere.studies.folder import StudyFolder
from bathysphere.studies.processes import Launch, ProcessHere, ProcessOnCluster
from bathysphere.studies.report import render
from bathysphere.studies.scheduler import Job, Watcher, run_all
from bathysphere.studies.study import Study
from bathysphere.terminal import Terminal

_SHARE = 0.05  # of the time that may go into reports of what has not ended yet


class _Nobody:
    def update(self, jobs: object) -> None:
        """Shows nothing."""


class Reporter:
    """Passes on what happens, and makes the table, figures and report again when runs have ended."""

    def __init__(self, study: Study, folder: StudyFolder, watcher: Watcher) -> None:
        self._study, self._folder, self._watcher = study, folder, watcher
        self._num_ended, self._free = 0, 0.0

    def update(self, jobs: Sequence[Job]) -> None:
        """Takes note of runs that have ended."""
        self._watcher.update(jobs)
        num_ended = sum(job.state in ("finished", "failed") for job in jobs)
        began = time.monotonic()
        if num_ended > self._num_ended and began >= self._free:
            self._folder.save(self._study, jobs)
            render(self._study, self._folder)
            self._num_ended, ended = num_ended, time.monotonic()
            self._free = ended + (ended - began) / _SHARE


def num_processes(jobs: int | None) -> int:
    """Returns how many runs go on side by side: `jobs`, or one for every core."""
    if jobs is not None and jobs < 1:
        raise BathysphereError(f"--jobs is {jobs}; expected at least 1.")
    return jobs or os.cpu_count() or 1


def failures(count: int) -> str:
    """Says that so many runs failed, and what to do."""
    return f"{count} {'run' if count == 1 else 'runs'} failed; repeat the command to try again."


def run_study(
    study: Study,
    folder: StudyFolder,
    budget: str,
    command: str,
    *,
    seeds: int | None = None,
    jobs: int | None = None,
    show: bool = True,
    ray: str | None = None,
) -> int:
    """Runs what is not finished yet and writes the raw results; returns the number of runs that failed.

    Args:
      study: what to run.
      folder: where.
      budget: how much.
      command: by which this can be repeated.
      seeds: runs of every setting; as the budget says if not given.
      jobs: runs side by side; one for every core if not given.
      show: whether to show on stderr how far it is.
      ray: address of the Ray cluster on which runs go on, as for `Cluster`; on this machine if not given.
    """
    count = num_processes(jobs)
    trials = study.trials(budget, seeds)
    all_jobs = folder.begin(study, budget, command, trials)
    console = Terminal(stderr=True)
    try:
        with (
            listening(signal.default_int_handler, ENDING),
            _launching(ray, count) as launch,
            StudyDisplay(study, count, console) if show else nullcontext(_Nobody()) as display,
        ):
            run_all(all_jobs, count, Reporter(study, folder, display), launch)
    except KeyboardInterrupt:
        sys.stderr.write("Everything is saved; repeat the command to go on.\n")
        raise
    finally:
        folder.save(study, all_jobs)
    return sum(job.state == "failed" for job in all_jobs)


@contextmanager
def _launching(ray: str | None, count: int) -> Iterator[Launch]:
    """Says where runs go on; leaves the cluster, if they do there."""
    if ray is None:
        yield ProcessHere
        return
    cluster = Cluster(ray, count)
    try:
        yield functools.partial(ProcessOnCluster, cluster)
    finally:
        cluster.close()
