"""Blocks played in processes on this machine."""

from __future__ import annotations

import multiprocessing
import os
import signal
import threading
from concurrent.futures import Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool

from bathysphere.errors import BathysphereError
from bathysphere.learning.blocks import BlockPlayer, PlayedBlock
from bathysphere.planning.worker_process import packed, portable, unpacked
from bathysphere.storage.state import Arrays

_MOST_RESTARTS = 20  # in a row, without a block that was played


class PlayersInProcesses:
    """Plays blocks in `num_workers` processes. If one dies all are replaced, and play again what was not finished.

    Args:
      player: plays the blocks; domain, values and model must be picklable.
      num_workers: processes.
    """

    def __init__(self, player: BlockPlayer, num_workers: int) -> None:
        self.num_workers = num_workers
        self.num_restarts = 0
        self._restarts_in_a_row = 0
        self._player = packed(player.config, player)
        self._orders: dict[int, tuple[Arrays, Future[PlayedBlock]]] = {}
        self._processes = self._start()

    def submit(self, number: int, version: int, weights: Arrays) -> None:
        """Sends the order to whoever is free next."""
        try:
            self._orders[number] = weights, self._processes.submit(_play, number, weights)
        except BrokenProcessPool:  # found out before `take` was
            self._restart()
            self.submit(number, version, weights)

    def take(self, number: int, seconds: float) -> PlayedBlock | None:
        """Waits for the block."""
        try:
            played = self._orders[number][1].result(seconds)
        except TimeoutError:
            return None
        except BrokenProcessPool:
            self._restart()
            return None
        del self._orders[number]
        self._restarts_in_a_row = 0
        return played

    def close(self) -> None:
        """Ends the processes, in the middle of a block if need be."""
        processes = list(self._processes._processes.values())
        self._processes.shutdown(wait=False, cancel_futures=True)
        for process in processes:
            process.kill()
        for process in processes:
            process.join()

    def _start(self) -> ProcessPoolExecutor:
        context = multiprocessing.get_context("spawn")
        return ProcessPoolExecutor(self.num_workers, context, initializer=_begin, initargs=(self._player,))

    def _restart(self) -> None:
        """Begins again with new processes and the orders that are not finished."""
        self.num_restarts += 1
        self._restarts_in_a_row += 1
        if self._restarts_in_a_row > _MOST_RESTARTS:
            raise BathysphereError(
                f"Processes that play blocks have died {_MOST_RESTARTS} times before they had played one. If memory "
                "runs out, lower --workers or --batch. What was saved can be continued with --resume."
            )
        self.close()
        self._processes = self._start()
        for number, (weights, future) in self._orders.items():
            if not future.done() or future.cancelled() or future.exception() is not None:
                self._orders[number] = weights, self._processes.submit(_play, number, weights)


_mine: BlockPlayer | Exception | None = None  # what this process plays with, or why it cannot


def _begin(player: bytes) -> None:
    """Prepares a process for its blocks."""
    global _mine
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the process that gives the orders
    threading.Thread(target=_end_with_parent, daemon=True).start()
    try:
        _mine = unpacked(player)
    except Exception as error:  # raised in an initializer, it would be lost
        _mine = portable(error)


def _end_with_parent() -> None:
    """Ends this process with the one that gives the orders, however that ends."""
    parent = multiprocessing.parent_process()
    assert parent is not None
    parent.join()
    os._exit(1)


def _play(number: int, weights: Arrays) -> PlayedBlock:
    if isinstance(_mine, Exception):
        raise _mine
    assert _mine is not None
    try:
        return _mine.play(number, weights)
    except Exception as error:
        raise portable(error) from None
