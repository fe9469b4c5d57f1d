"""Workers in a process of their own, which takes orders through a pipe."""

from __future__ import annotations

import importlib
import multiprocessing
import pickle
import signal
import sys
import traceback
import weakref
from collections.abc import Callable
from dataclasses import fields
from multiprocessing.connection import Connection
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from bathysphere.errors import BathysphereError
from bathysphere.planning.config import PlannerSettings
from bathysphere.planning.episode import Episode
from bathysphere.planning.graph.risk import modules_of_measures
from bathysphere.planning.workers import Plan, Report, Worker, Workers, interrupted, num_threads

_GRACE_SECONDS = 5.0  # that a process gets to end by itself
_MEASURES = ("risk", "final_risk")  # fields of a planner's config that name risk measures
_BY_STEP = ("states", "actions", "rewards", "search_values")  # arrays of an Episode with a row per step
_BY_EPISODE = tuple(field.name for field in fields(Episode) if field.name not in _BY_STEP)


class ProcessGroup:
    """Workers in another process, which ends with this object or with this process, whichever is first.

    The first answer is to being made, and says nothing.
    """

    def __init__(self, plan: Plan, mine: list[Worker], num_groups: int) -> None:
        context = multiprocessing.get_context("spawn")
        self._pipe, theirs = context.Pipe()
        order = packed(plan.config, (plan, mine, num_threads(num_groups)))
        self._process = context.Process(target=_serve, args=(theirs, order), daemon=True, name="bathysphere-workers")
        self._process.start()
        theirs.close()
        self.close = weakref.finalize(self, _stop, self._process, self._pipe)

    def ask(self, method: str, *args: Any, changed: bytes | None = None) -> None:
        """Sends the order, and the values and model if they have changed."""
        try:
            self._pipe.send((method, args, changed))
        except OSError:
            raise self._death() from None

    def answer(self) -> tuple[Any, Report]:
        """Waits for the process."""
        try:
            returned, report, error = self._pipe.recv()
        except (OSError, EOFError):
            raise self._death() from None
        if error is not None:
            raise error
        return _unfold(returned) if isinstance(returned, _Folded) else returned, report

    def _death(self) -> BathysphereError:
        if not self.close.alive:
            return interrupted()
        self._process.join(_GRACE_SECONDS)
        return BathysphereError(
            f"A planning process ended unexpectedly (exit code {self._process.exitcode}). If memory ran out, lower the "
            "batch; set workers to 1 to plan in a single process."
        )


def pickled(things: Any, dumps: Callable[[Any], bytes] | None = None) -> bytes:
    """Returns `things` in the form in which they travel to another process; `dumps` pickles them in another way."""
    try:
        return pickle.dumps(things, pickle.HIGHEST_PROTOCOL) if dumps is None else dumps(things)
    except Exception as error:  # whatever a user's own class raises
        raise BathysphereError(
            f"The domain, its values or the model cannot be sent to another process: {error}. "
            "Set workers to 1 to plan in a single one."
        ) from error


def packed(config: PlannerSettings, things: Any, dumps: Callable[[Any], bytes] | None = None) -> bytes:
    """Returns `things` pickled, with the modules that must be imported before: they register what `config` names."""
    measures = [name for field in _MEASURES if (name := getattr(config, field, None)) is not None]
    return pickled((modules_of_measures(measures), pickled(things, dumps)))


def unpacked(packed: bytes) -> Any:
    """Returns what `packed` was given, in another process."""
    modules, content = pickle.loads(packed)
    for module in modules:
        importlib.import_module(module)
    return pickle.loads(content)


def _stop(process: Any, pipe: Connection) -> None:
    """Ends a process: it leaves when its pipe is closed, or is made to."""
    pipe.close()
    process.join(_GRACE_SECONDS)
    if process.is_alive():
        process.terminate()
        process.join()


def _serve(pipe: Connection, order: bytes) -> None:
    """Makes workers and follows orders until the pipe is closed: all that a planning process does."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the process that gives the orders
    try:
        workers = _begin(order)
    except Exception as caught:
        pipe.send((None, None, portable(caught)))
        return
    returned: Any = None
    error: Exception | None = None
    while True:
        try:
            pipe.send((returned, workers.report(), error))
            method, args, changed = pipe.recv()
        except (OSError, EOFError):
            return
        returned = error = None
        try:
            if changed is not None:
                workers.use(changed)
            returned = getattr(workers, method)(*args)
            if method in ("step", "play"):
                returned = _fold(returned)
        except Exception as caught:
            error = portable(caught)


def _begin(order: bytes) -> Workers:
    plan, mine, share = unpacked(order)
    torch = sys.modules.get("torch")
    if torch is not None and share is not None:
        torch.set_num_threads(share)
    return Workers(plan, mine)


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


def portable(error: Exception) -> Exception:
    """Returns an exception that survives the journey to another process and still says where it arose."""
    told = "".join(traceback.format_exception(error))
    if not isinstance(error, BathysphereError):
        error.add_note(f"In a planning process:\n{told}")
    try:
        pickle.loads(pickle.dumps(error))
    except Exception:  # a user's own class that cannot be sent
        return RuntimeError(told)
    return error
