"""Workers in a process of their own, which takes orders through a pipe."""

from __future__ import annotations

import multiprocessing
import signal
import sys
import weakref
from multiprocessing.connection import Connection
from typing import Any

from bathysphere.errors import BathysphereError
from bathysphere.planning.transport import Folded, fold, packed, portable, unfold, unpacked
from bathysphere.planning.workers import Plan, Report, Worker, Workers, interrupted, num_threads

_GRACE_SECONDS = 5.0  # that a process gets to end by itself


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
        return unfold(returned) if isinstance(returned, Folded) else returned, report

    def _death(self) -> BathysphereError:
        if not self.close.alive:
            return interrupted()
        self._process.join(_GRACE_SECONDS)
        return BathysphereError(
            f"A planning process ended unexpectedly (exit code {self._process.exitcode}). If memory ran out, lower the "
            "batch; set workers to 1 to plan in a single process."
        )


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
                returned = fold(returned)
        except Exception as caught:
            error = portable(caught)


def _begin(order: bytes) -> Workers:
    plan, mine, share = unpacked(order)
    torch = sys.modules.get("torch")
    if torch is not None and share is not None:
        torch.set_num_threads(share)
    return Workers(plan, mine)
