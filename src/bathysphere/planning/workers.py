"""The lanes of a crew: searches here, in a thread, or in other processes that take orders through a pipe."""

from __future__ import annotations

import multiprocessing
import pickle
import signal
import sys
import traceback
import weakref
from collections import Counter
from collections.abc import Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, fields
from multiprocessing.connection import Connection
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from bathysphere.domains.base import Domain, Model, Starts
from bathysphere.errors import BathysphereError
from bathysphere.planning.config import SearchConfig
from bathysphere.planning.episode import Episode
from bathysphere.planning.mcts import Search, Values
from bathysphere.planning.pace import Pace
from bathysphere.storage.state import section

_PATIENCE = 5.0  # seconds that a process gets to end by itself
_BY_STEP = ("states", "actions", "rewards", "search_values")  # arrays of an Episode with a row per step
_BY_EPISODE = tuple(field.name for field in fields(Episode) if field.name not in _BY_STEP)


class Lane(NamedTuple):
    """What sets one lane apart from the others."""

    number: int
    batch: int
    seed: np.random.SeedSequence
    num_episodes: int | None


@dataclass(frozen=True)
class Plan:
    """What all lanes of a crew have in common."""

    domain: Domain
    values: Values
    config: SearchConfig | None
    model: Model | None
    starts: Starts | None
    lanes: int
    steady: bool


class Report(NamedTuple):
    """How some lanes stand."""

    num_active: int
    seconds: dict[str, float]
    model_errors: Counter[str]
    arena_bytes: int
    network_calls: int
    network_batches: int


class Lanes:
    """Some of a crew's lanes, played one after the other."""

    def __init__(self, plan: Plan, mine: list[Lane]) -> None:
        self._numbers = [lane.number for lane in mine]
        self._is_stopped = False
        self._searches = [
            Search(
                plan.domain,
                plan.values,
                plan.config,
                batch=lane.batch,
                seed=lane.seed,
                model=plan.model,
                num_episodes=lane.num_episodes,
                starts=plan.starts,
                lane=lane.number,
                lanes=plan.lanes,
                steady=plan.steady,
            )
            for lane in mine
        ]

    def learn(self, news: bytes) -> None:
        """Goes on with the values and the model in `news`, pickled."""
        values, model = pickle.loads(news)
        for search in self._searches:
            search.values = values
            search.model = search.domain if model is None else model

    def step(self, moves: int) -> list[Episode]:
        """Makes `moves` moves in every running episode; returns the episodes that finished, lane after lane."""
        return [episode for search in self._searches for episode in search.step(moves)]

    def play(self) -> list[Episode]:
        """Plays until no episode is left or somebody calls `stop`; returns the episodes that finished."""
        episodes = []
        for search in self._searches:
            pace = Pace()
            while search.active.any() and not self._is_stopped:
                episodes += pace.step(search)
        return episodes

    def stop(self) -> None:
        """Has `play`, in another thread, return soon."""
        self._is_stopped = True

    def report(self) -> Report:
        """Sums up all lanes."""
        searches = self._searches
        return Report(
            num_active=sum(int(search.active.sum()) for search in searches),
            seconds={phase: sum(search.seconds[phase] for search in searches) for phase in searches[0].seconds},
            model_errors=sum((search.model_errors for search in searches), Counter()),
            arena_bytes=sum(array.nbytes for search in searches for array in search.arena),
            network_calls=sum(search.network_calls for search in searches),
            network_batches=sum(search.network_batches for search in searches),
        )

    def state_dict(self) -> dict[str, NDArray[Any]]:
        """Returns everything a resumed crew needs of these lanes."""
        return {
            f"lane{number}.{name}": array
            for number, search in zip(self._numbers, self._searches, strict=True)
            for name, array in search.state_dict().items()
        }

    def load_state_dict(self, state: Mapping[str, NDArray[Any]]) -> None:
        """Restores these lanes from what all of the crew's returned."""
        for number, search in zip(self._numbers, self._searches, strict=True):
            search.load_state_dict(section(state, f"lane{number}."))


class LanesHere:
    """Lanes in this process. They obey when their answer is wanted, so that others who were asked work meanwhile."""

    def __init__(self, plan: Plan, mine: list[Lane], num_processes: int) -> None:
        self._num_processes = num_processes
        with _share_of_threads(num_processes):
            self._lanes = Lanes(plan, mine)
        self._order: tuple[str, tuple[Any, ...]] | None = None

    def ask(self, what: str, *args: Any, news: bytes | None = None) -> None:
        """Takes the order to call a method of the lanes. News are none here: values and model are the crew's own."""
        self._order = what, args

    def answer(self) -> tuple[Any, Report]:
        """Returns what the method returned, and how the lanes stand."""
        said = None
        if self._order is not None:
            what, args = self._order
            self._order = None
            with _share_of_threads(self._num_processes):
                said = getattr(self._lanes, what)(*args)
        return said, self._lanes.report()

    def close(self) -> None:
        """Does nothing: there is no process to end."""


class LanesBeside:
    """Lanes in a thread of this process, for searches that never leave compiled code and so never make others wait."""

    def __init__(self, plan: Plan, mine: list[Lane]) -> None:
        self._lanes = Lanes(plan, mine)
        self._thread = ThreadPoolExecutor(1, "bathysphere-lanes")
        self._answer: Future[Any] | None = None
        self._is_closed = False

    def ask(self, what: str, *args: Any, news: bytes | None = None) -> None:
        """Has a method of the lanes called in the thread. News are none here: values are the crew's own."""
        if self._is_closed:
            raise _interrupted()
        self._answer = self._thread.submit(getattr(self._lanes, what), *args)

    def answer(self) -> tuple[Any, Report]:
        """Waits for what the method returned, and how the lanes stand; or raises what it raised."""
        said = None if self._answer is None else self._answer.result()
        self._answer = None
        return said, self._lanes.report()

    def close(self) -> None:
        """Has the thread end as soon as it can."""
        self._is_closed = True
        self._lanes.stop()
        self._thread.shutdown(wait=False)


class LanesElsewhere:
    """Lanes in a process of their own, which ends with this object or with this process, whichever is first.

    Between `ask` and `answer` both work at the same time. The first answer is to being made, and says nothing.
    """

    def __init__(self, plan: Plan, mine: list[Lane], num_processes: int) -> None:
        context = multiprocessing.get_context("spawn")
        self._pipe, theirs = context.Pipe()
        order = pickled((plan, mine, _num_threads(num_processes)))
        self._process = context.Process(target=_serve, args=(theirs, order), daemon=True, name="bathysphere-lanes")
        self._process.start()
        theirs.close()
        self.close = weakref.finalize(self, _stop, self._process, self._pipe)

    def ask(self, what: str, *args: Any, news: bytes | None = None) -> None:
        """Has a method of the lanes called over there, after they have been told the news."""
        try:
            self._pipe.send((what, args, news))
        except OSError:
            raise self._death() from None

    def answer(self) -> tuple[Any, Report]:
        """Waits for what the method returned, and how the lanes stand; or raises what it raised."""
        try:
            said, report, error = self._pipe.recv()
        except (OSError, EOFError):
            raise self._death() from None
        if error is not None:
            raise error
        return _unfold(said) if isinstance(said, _Folded) else said, report

    def _death(self) -> BathysphereError:
        if not self.close.alive:
            return _interrupted()
        self._process.join(_PATIENCE)
        return BathysphereError(
            f"A planning process ended unexpectedly (exit code {self._process.exitcode}). If memory ran out, lower the "
            "batch; set lanes to 1 to plan in a single process."
        )


def _interrupted() -> BathysphereError:
    return BathysphereError("This crew was interrupted in the middle of a move. Make a new one.")


def _num_threads(num_processes: int) -> int | None:
    """Returns how many of PyTorch's threads each process may use while all plan; None if nobody uses PyTorch."""
    torch = sys.modules.get("torch")
    return None if torch is None else max(torch.get_num_threads() // num_processes, 1)


@contextmanager
def _share_of_threads(num_processes: int) -> Iterator[None]:
    """Leaves PyTorch in this process its share of threads only, for a while."""
    torch, num_threads = sys.modules.get("torch"), _num_threads(num_processes)
    if torch is None or num_threads == (all_threads := torch.get_num_threads()):
        yield
        return
    torch.set_num_threads(num_threads)
    try:
        yield
    finally:
        torch.set_num_threads(all_threads)


def pickled(things: Any) -> bytes:
    """Returns `things` in the form in which they travel to another process."""
    try:
        return pickle.dumps(things, pickle.HIGHEST_PROTOCOL)
    except Exception as error:  # whatever a user's own class raises
        raise BathysphereError(
            f"The domain, its values or the model cannot be sent to another process: {error}. "
            "Set lanes to 1 to plan in a single one."
        ) from error


def _stop(process: Any, pipe: Connection) -> None:
    """Ends a process: it leaves when its pipe is closed, or is made to."""
    pipe.close()
    process.join(_PATIENCE)
    if process.is_alive():
        process.terminate()
        process.join()


def _serve(pipe: Connection, order: bytes) -> None:
    """Makes lanes and does what it is told until the pipe is closed: the life of a planning process."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the process that gives the orders
    try:
        lanes = _begin(order)
    except Exception as caught:
        pipe.send((None, None, _portable(caught)))
        return
    said: Any = None
    error: Exception | None = None
    while True:
        try:
            pipe.send((said, lanes.report(), error))
            what, args, news = pipe.recv()
        except (OSError, EOFError):
            return
        said = error = None
        try:
            if news is not None:
                lanes.learn(news)
            said = getattr(lanes, what)(*args)
            if what in ("step", "play"):
                said = _fold(said)
        except Exception as caught:
            error = _portable(caught)


def _begin(order: bytes) -> Lanes:
    plan, mine, num_threads = pickle.loads(order)
    torch = sys.modules.get("torch")
    if torch is not None and num_threads is not None:
        torch.set_num_threads(num_threads)
    return Lanes(plan, mine)


class _Folded(NamedTuple):
    """Episodes laid end to end: a few long arrays travel faster than many short ones."""

    lengths: list[int]
    by_step: list[NDArray[Any]]
    by_episode: list[list[Any]]


def _fold(episodes: list[Episode]) -> _Folded:
    return _Folded(
        [len(episode) for episode in episodes],
        [np.concatenate([getattr(episode, name) for episode in episodes]) for name in _BY_STEP if episodes],
        [[getattr(episode, name) for name in _BY_EPISODE] for episode in episodes],
    )


def _unfold(folded: _Folded) -> list[Episode]:
    episodes, end = [], 0
    for length, rest in zip(folded.lengths, folded.by_episode, strict=True):
        begin, end = end, end + length
        parts: dict[str, Any] = {name: array[begin:end] for name, array in zip(_BY_STEP, folded.by_step, strict=True)}
        parts |= zip(_BY_EPISODE, rest, strict=True)
        episodes.append(Episode(**parts))
    return episodes


def _portable(error: Exception) -> Exception:
    """Returns an exception that survives the journey to another process and still says where it arose."""
    told = "".join(traceback.format_exception(error))
    if not isinstance(error, BathysphereError):
        error.add_note(f"In a planning process:\n{told}")
    try:
        pickle.loads(pickle.dumps(error))
    except Exception:  # a user's own class that cannot be sent
        return RuntimeError(told)
    return error
