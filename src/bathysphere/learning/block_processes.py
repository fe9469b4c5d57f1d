"""Blocks played in processes on this machine."""

from __future__ import annotations

import multiprocessing
import os
import pickle
import signal
import threading
from concurrent.futures import Future, ThreadPoolExecutor
from multiprocessing.connection import Connection
from queue import SimpleQueue

from bathysphere.errors import BathysphereError
from bathysphere.learning.blocks import BlockPlayer, Knowledge, PlayedBlock
from bathysphere.planning.transport import packed, pickled, portable, unpacked

_MOST_TRIES = 20  # of a block whose processes die


class PlayersInProcesses:
    """Plays blocks in `num_workers` processes. One that dies is replaced, and its block is played again.

    Each process has a pipe and, while it plays, a thread here that waits for it. Nothing is shared among processes, so
    that one that is killed leaves no lock behind.

    Args:
      player: plays the blocks; domain, values and model must be picklable.
      num_workers: processes.
    """

    def __init__(self, player: BlockPlayer, num_workers: int) -> None:
        self.num_workers = num_workers
        self.num_restarts = 0
        self._player = packed(player.config, player)
        self._version, self._knowledge = -1, b""  # the newest, as it travels
        self._answers: dict[int, Future[PlayedBlock]] = {}
        self._is_closed = False
        self._processes = [_Process(self._player) for _ in range(num_workers)]
        self._idle: SimpleQueue[int] = SimpleQueue()  # numbers of processes
        for number in range(num_workers):
            self._idle.put(number)
        self._threads = ThreadPoolExecutor(num_workers, "bathysphere-blocks")

    def submit(self, number: int, version: int, knowledge: Knowledge) -> None:
        """Sends the order to whoever is free next."""
        if version != self._version:
            self._version, self._knowledge = version, pickled(knowledge)
        self._answers[number] = self._threads.submit(self._play, number, self._knowledge)

    def take(self, number: int, seconds: float) -> PlayedBlock | None:
        """Waits for the block."""
        try:
            played = self._answers[number].result(seconds)
        except TimeoutError:
            return None
        del self._answers[number]
        return played

    def close(self) -> None:
        """Ends the processes, in the middle of a block if need be."""
        self._is_closed = True
        self._threads.shutdown(wait=False, cancel_futures=True)
        for process in self._processes:
            process.end()
        self._threads.shutdown()

    def _play(self, number: int, knowledge: bytes) -> PlayedBlock:
        """Has a block played, as often as it takes; runs in a thread."""
        mine = self._idle.get()
        try:
            for _ in range(_MOST_TRIES):
                try:
                    return self._processes[mine].play(number, knowledge)
                except (OSError, EOFError):
                    if self._is_closed:
                        raise
                    self._processes[mine].end()
                    self._processes[mine] = _Process(self._player)
                    self.num_restarts += 1
        finally:
            self._idle.put(mine)
        raise BathysphereError(
            f"Processes that played block {number} have died {_MOST_TRIES} times. If memory runs out, lower --workers "
            "or --batch. What was saved can be continued with --resume."
        )


class _Process:
    """A process that plays blocks, one at a time."""

    def __init__(self, player: bytes) -> None:
        context = multiprocessing.get_context("spawn")
        self._pipe, theirs = context.Pipe()
        self._process = context.Process(target=_serve, args=(theirs, player), daemon=True, name="bathysphere-blocks")
        self._process.start()
        theirs.close()

    def play(self, number: int, knowledge: bytes) -> PlayedBlock:
        """Waits for a block, or raises what playing it raised; OSError or EOFError if the process has died."""
        self._pipe.send(number)
        self._pipe.send_bytes(knowledge)
        answer: PlayedBlock | Exception = self._pipe.recv()
        if isinstance(answer, Exception):
            raise answer
        return answer

    def end(self) -> None:
        """Kills the process: it has nothing to tidy up."""
        self._process.kill()
        self._process.join()


def _serve(pipe: Connection, packed_player: bytes) -> None:
    """Plays blocks until it is killed: all that a process does."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the process that gives the orders
    threading.Thread(target=_end_with_parent, daemon=True).start()
    player: BlockPlayer | None = None
    while True:
        number: int = pipe.recv()
        knowledge = pipe.recv_bytes()
        try:
            player = player or unpacked(packed_player)
            pipe.send(player.play(number, pickle.loads(knowledge)))
        except Exception as error:
            pipe.send(portable(error))


def _end_with_parent() -> None:
    """Ends this process with the one that gives the orders, however that ends."""
    parent = multiprocessing.parent_process()
    assert parent is not None
    parent.join()
    os._exit(1)
