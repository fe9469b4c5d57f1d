"""The workers of a pool: planners side by side, in groups that work here, in a thread, or in another process."""

from __future__ import annotations

import pickle
import sys
from collections.abc import Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from bathysphere.domains.base import Domain, Model, Remembers, Starts
from bathysphere.errors import BathysphereError
from bathysphere.planning.config import PlannerSettings
from bathysphere.planning.episode import Episode
from bathysphere.planning.mcts import MCTS
from bathysphere.planning.planner import TimedSteps, Values, Work, make_planner
from bathysphere.planning.real_steps import MadeSteps
from bathysphere.storage.state import prefixed, section


class Worker(NamedTuple):
    """What sets one worker apart from the others."""

    number: int
    batch: int
    seed: np.random.SeedSequence
    num_episodes: int | None


@dataclass(frozen=True)
class Plan:
    """What all workers of a pool have in common."""

    domain: Domain
    values: Values
    config: PlannerSettings
    model: Model | None
    starts: Starts | None
    workers: int
    steady: bool
    graph_states: int | None


class Report(NamedTuple):
    """How far some workers are."""

    num_active: int  # episodes
    graph_bytes: int
    work: Work


class Workers:
    """Some of a pool's workers, one after the other."""

    def __init__(self, plan: Plan, mine: list[Worker]) -> None:
        self._numbers = [worker.number for worker in mine]
        self._domain = plan.domain
        self._is_stopped = False
        self._planners = [
            make_planner(
                plan.domain,
                plan.values,
                plan.config,
                batch=worker.batch,
                seed=worker.seed,
                model=plan.model,
                num_episodes=worker.num_episodes,
                starts=plan.starts,
                worker=worker.number,
                workers=plan.workers,
                steady=plan.steady,
                graph_states=plan.graph_states,
            )
            for worker in mine
        ]

    def use(self, changed: bytes) -> None:
        """Goes on with the values and the model in `changed`, pickled."""
        values, model = pickle.loads(changed)
        for planner in self._planners:
            planner.values = values
            planner.model = planner.domain if model is None else model

    def step(self, steps: int) -> list[Episode]:
        """Makes `steps` steps in every running episode; returns the episodes that finished, worker after worker."""
        return [episode for planner in self._planners for episode in planner.step(steps)]

    def play(self) -> list[Episode]:
        """Plays until no episode is left or `stop` is called; returns the episodes that finished."""
        episodes = []
        for planner in self._planners:
            timed = TimedSteps()
            while planner.active.any() and not self._is_stopped:
                episodes += timed.step(planner)
        return episodes

    def stop(self) -> None:
        """Makes `play`, in another thread, return soon."""
        self._is_stopped = True

    def made(self) -> list[MadeSteps]:
        """Returns the latest steps of every worker that plans with a model."""
        return [planner.made for planner in self._planners if isinstance(planner, MCTS) and planner.made is not None]

    def report(self) -> Report:
        """Sums up all workers."""
        return Report(
            num_active=sum(int(planner.active.sum()) for planner in self._planners),
            graph_bytes=sum(planner.graph_bytes for planner in self._planners),
            work=sum((planner.work for planner in self._planners), Work()),
        )

    def state_dict(self) -> dict[str, NDArray[Any]]:
        """Returns everything a resumed pool needs of these workers."""
        state: dict[str, NDArray[Any]] = {}
        for number, planner in zip(self._numbers, self._planners, strict=True):
            state |= prefixed(f"worker{number}.", planner.state_dict())
        if isinstance(self._domain, Remembers):
            state |= prefixed(f"domain{self._numbers[0]}.", self._domain.state_dict())
        return state

    def load_state_dict(self, state: Mapping[str, NDArray[Any]]) -> None:
        """Restores these workers from what all of the pool's returned."""
        if isinstance(self._domain, Remembers):  # what any process knew, since workers may be grouped otherwise now
            names = sorted({name.partition(".")[0] for name in state if name.startswith("domain")})
            self._domain.load_state_dicts([section(state, f"{name}.") for name in names])
        for number, planner in zip(self._numbers, self._planners, strict=True):
            planner.load_state_dict(section(state, f"worker{number}."))


class Group(Protocol):
    """Workers that a pool can give orders to. Between `ask` and `answer` all groups work at the same time."""

    def ask(self, method: str, *args: Any, changed: bytes | None = None) -> None:
        """Orders a method of the workers to be called, with the values and model in `changed` if there are any."""
        ...

    def answer(self) -> tuple[Any, Report]:
        """Waits for what the method returned, and how far the workers are; or raises what it raised."""
        ...

    def close(self) -> object:
        """Ends whatever the group runs in."""
        ...


class LocalGroup:
    """Workers in this process. They begin when their answer is asked for, after all other groups have begun.

    They use the pool's own values and model, so these never have to be sent.
    """

    def __init__(self, plan: Plan, mine: list[Worker], num_groups: int) -> None:
        self._num_groups = num_groups
        with _share_of_threads(num_groups):
            self._workers = Workers(plan, mine)
        self._order: tuple[str, tuple[Any, ...]] | None = None

    def ask(self, method: str, *args: Any, changed: bytes | None = None) -> None:
        """Takes the order."""
        self._order = method, args

    def answer(self) -> tuple[Any, Report]:
        """Calls the method."""
        returned = None
        if self._order is not None:
            method, args = self._order
            self._order = None
            with _share_of_threads(self._num_groups):
                returned = getattr(self._workers, method)(*args)
        return returned, self._workers.report()

    def close(self) -> None:
        """Does nothing: there is no process to end."""


class ThreadGroup:
    """Workers in a thread of this process, for planners that stay in compiled code and so leave the interpreter free.

    They use the pool's own values.
    """

    def __init__(self, plan: Plan, mine: list[Worker]) -> None:
        self._workers = Workers(plan, mine)
        self._thread = ThreadPoolExecutor(1, "bathysphere-workers")
        self._answer: Future[Any] | None = None
        self._is_closed = False

    def ask(self, method: str, *args: Any, changed: bytes | None = None) -> None:
        """Calls the method in the thread."""
        if self._is_closed:
            raise interrupted()
        self._answer = self._thread.submit(getattr(self._workers, method), *args)

    def answer(self) -> tuple[Any, Report]:
        """Waits for the thread."""
        returned = None if self._answer is None else self._answer.result()
        self._answer = None
        return returned, self._workers.report()

    def close(self) -> None:
        """Ends the thread as soon as possible."""
        self._is_closed = True
        self._workers.stop()
        self._thread.shutdown(wait=False)


def interrupted() -> BathysphereError:
    """Returns the error of a pool that is used after an interrupt."""
    return BathysphereError("This pool was interrupted in the middle of a step. Make a new one.")


def num_threads(num_groups: int) -> int | None:
    """Returns how many of PyTorch's threads each group may use while all plan; None if PyTorch is not in use."""
    torch = sys.modules.get("torch")
    return None if torch is None else max(torch.get_num_threads() // num_groups, 1)


def _share_of_threads(num_groups: int) -> AbstractContextManager[None]:
    """Leaves PyTorch in this process its share of threads only, for a while."""
    return using_threads(num_threads(num_groups))


@contextmanager
def using_threads(count: int | None) -> Iterator[None]:
    """Leaves PyTorch in this process so many threads, for a while; None leaves them all."""
    torch = sys.modules.get("torch")
    if torch is None or count is None or count == (all_threads := torch.get_num_threads()):
        yield
        return
    torch.set_num_threads(count)
    try:
        yield
    finally:
        torch.set_num_threads(all_threads)
