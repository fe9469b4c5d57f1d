"""Who does the tasks of solving: this process, several others at the same time, or a cluster."""

from __future__ import annotations

import functools
import multiprocessing
import signal
from collections.abc import Generator, Iterator
from concurrent.futures import FIRST_COMPLETED, Future
from concurrent.futures import wait as wait_for_answers
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from multiprocessing.connection import Connection, wait
from multiprocessing.process import BaseProcess

from bathysphere.puzzles.player import LevelPlayer
from bathysphere.puzzles.solving import Done, Effort, Solver, Solving, Task
from bathysphere.scale.cluster import Cluster
from bathysphere.signals import OF_TERMINAL, listening

_LOOK_SECONDS = 0.5  # that work on a cluster is waited for
_GRACE_SECONDS = 5.0  # for a process that has closed its pipe to say how it ended


def work_here(player: LevelPlayer, solving: Solving) -> Generator[None]:
    """Does all tasks, one after the other; yields whenever something was done. Mutates: solving."""
    solver = Solver(player, solving.effort)
    while (task := solving.next_task()) is not None:
        for done in solver.run(task):
            solving.note(task, done)
            yield


def work_in_processes(agent: str, solving: Solving, jobs: int) -> Generator[None]:
    """Does all tasks in `jobs` processes; yields whenever something was done. They end with this generator.

    A process that ends unexpectedly takes its task with it, and the others go on.

    Mutates: solving.
    """
    with _started(agent, solving.effort, jobs) as workers:
        while True:
            for worker in workers:
                if worker.task is None and (task := solving.next_task()) is not None:
                    worker.begin(task)
            busy = [worker for worker in workers if worker.task is not None]
            if not busy:
                break
            ready = wait([worker.pipe for worker in busy])
            for worker in busy:
                if worker.pipe in ready and not worker.listen(solving):
                    workers.remove(worker)
            yield
    while (task := solving.next_task()) is not None:  # no process is left
        solving.give_up(task, set(), "all processes have ended")


def work_on_cluster(agent: str, solving: Solving, cluster: Cluster) -> Generator[None]:
    """Does all tasks on a Ray cluster, which knows the agent too; yields whenever something was done.

    A task whose worker dies is done again. The cluster is left with this generator.

    Mutates: solving.
    """
    running: dict[Future[list[Done]], Task] = {}
    try:
        while True:
            while len(running) < cluster.num_workers and (task := solving.next_task()) is not None:
                running[cluster.run(_solve, agent, solving.effort, task)] = task
            if not running:
                return
            for answer in wait_for_answers(running, _LOOK_SECONDS, FIRST_COMPLETED).done:
                task = running.pop(answer)
                for done in cluster.wait(answer, 0.0):
                    solving.note(task, done)
            yield
    finally:
        cluster.close()


def _solve(agent: str, effort: Effort, task: Task) -> list[Done]:
    """Does a task in a worker of the cluster."""
    return list(Solver(_player(agent), effort).run(task))


@functools.lru_cache(1)  # a worker does many tasks
def _player(agent: str) -> LevelPlayer:
    return LevelPlayer(agent)


@dataclass
class _Worker:
    """A process that does tasks, one at a time."""

    process: BaseProcess
    pipe: Connection
    task: Task | None = None
    done: set[int] = field(default_factory=set)
    """Numbers of the task's levels that are."""

    def begin(self, task: Task) -> None:
        """Hands over a task."""
        self.task, self.done = task, set()
        with suppress(OSError):  # it has ended; listening tells
            self.pipe.send(task)

    def listen(self, solving: Solving) -> bool:
        """Waits for the next thing that the process says, and takes it down; returns whether the process is alive."""
        assert self.task is not None
        try:
            done: Done | None = self.pipe.recv()
        except (OSError, EOFError):
            self.process.join(_GRACE_SECONDS)
            what = f"process ended unexpectedly (exit code {self.process.exitcode})"
            solving.give_up(self.task, self.done, f"its {what}")
            solving.failures.append(f"A {what}; its levels count as unsolved. If memory ran out, use fewer --jobs.")
            return False
        if done is None:
            self.task = None
        else:
            solving.note(self.task, done)
            self.done.add(done.number)
        return True


@contextmanager
def _started(agent: str, effort: Effort, jobs: int) -> Iterator[list[_Worker]]:
    """Starts processes, and ends those that are still there."""
    import torch

    context = multiprocessing.get_context("spawn")
    effort = replace(effort, memory_mb=max(effort.memory_mb // jobs, 1))
    threads = max(torch.get_num_threads() // jobs, 1)
    workers: list[_Worker] = []
    try:
        with listening(signal.SIG_IGN, OF_TERMINAL):  # inherited: interrupts are for this process
            for number in range(1, jobs + 1):
                pipe, theirs = context.Pipe()
                order = theirs, agent, effort, threads
                process = context.Process(target=_serve, args=order, daemon=True, name=f"solving-{number}")
                process.start()
                workers.append(_Worker(process, pipe))
                theirs.close()
        yield list(workers)
    finally:
        for worker in workers:
            worker.process.kill()  # it has nothing to tidy up
            worker.process.join()


def _serve(pipe: Connection, agent: str, effort: Effort, threads: int) -> None:
    """Does tasks until the pipe is closed: all that a process does."""
    import torch

    torch.set_num_threads(threads)
    solver = Solver(LevelPlayer(agent), effort)
    with suppress(OSError, EOFError):  # the pipe is closed
        while True:
            for done in solver.run(pipe.recv()):
                pipe.send(done)
            pipe.send(None)
