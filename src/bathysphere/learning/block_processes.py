"""Blocks played in processes on this machine."""

from __future__ import annotations

import multiprocessing
import os
import pickle
import sys
import threading
import time
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from multiprocessing.connection import Connection, wait
from queue import SimpleQueue
from types import ModuleType

from bathysphere.errors import BathysphereError
from bathysphere.learning.blocks import BlockPlayer, Knowledge, PlayedBlock
from bathysphere.planning.transport import packed, pickled, portable, unpacked
from bathysphere.signals import left_to_parent

_MOST_TRIES = 20  # of a block whose processes die
_SHORT = 0.1  # seconds: blocks that take less are ordered ahead
_LOOK_EVERY = 0.002  # seconds between two looks at the processes while the learner is busy


@dataclass
class _Order:
    """A block to be played."""

    number: int
    knowledge: bytes  # as it travels
    tries: int = 0  # that ended with the death of a process


class PlayersInProcesses:
    """Plays blocks in `num_workers` processes. One that dies is replaced, and its blocks are played again.

    Each process has a pipe, and nothing is shared among processes, so that one that is killed leaves no lock behind.
    The learner's own thread serves the pipes, while it waits and now and then while it learns: other threads would have
    to wait for it whenever they need the interpreter.

    Args:
      player: plays the blocks; domain, values and model must be picklable.
      num_workers: processes.
    """

    def __init__(self, player: BlockPlayer, num_workers: int) -> None:
        self.num_workers = num_workers
        self.num_restarts = 0
        self._player = packed(player.config, player)
        self._version, self._knowledge = -1, b""  # the newest, as it travels
        self._waiting: deque[_Order] = deque()
        self._answers: dict[int, PlayedBlock | Exception] = {}
        self._most_orders = 1  # of a process at a time
        self._looked = 0.0  # when, last
        self._processes = [_Process(self._player) for _ in range(num_workers)]

    def submit(self, number: int, version: int, knowledge: Knowledge) -> None:
        """Sends the order to whoever is free next."""
        if version != self._version:
            self._version, self._knowledge = version, pickled(knowledge)
        self._waiting.append(_Order(number, self._knowledge))
        self._hand_out()

    def take(self, number: int, seconds: float) -> PlayedBlock | None:
        """Waits for the block."""
        deadline = time.perf_counter() + seconds
        while number not in self._answers:
            if (left := deadline - time.perf_counter()) <= 0:
                return None
            self._look(left)
        answer = self._answers.pop(number)
        if isinstance(answer, Exception):
            raise answer
        return answer

    def look_after(self) -> None:
        """Takes in what has been played and hands out orders."""
        if time.perf_counter() - self._looked > _LOOK_EVERY:
            self._look(0.0)

    def close(self) -> None:
        """Ends the processes, in the middle of a block if need be."""
        for process in self._processes:
            process.end()

    def _look(self, seconds: float) -> None:
        """Waits for up to `seconds` until a process has something to say; listens to all that have."""
        ready = wait([process.pipe for process in self._processes], seconds)
        for index, process in enumerate(self._processes):
            if process.pipe in ready:
                self._listen(index)
        self._hand_out()
        self._looked = time.perf_counter()

    def _listen(self, index: int) -> None:
        process = self._processes[index]
        try:
            answer: PlayedBlock | Exception = process.pipe.recv()
        except (OSError, EOFError):
            self._replace(index)
            return
        self._answers[process.orders.popleft().number] = answer
        if isinstance(answer, PlayedBlock):
            # To wait for each order would take too large a share of a short block. Of long ones, none should wait for
            # its process while another has nothing to do.
            self._most_orders = 2 if answer.seconds < _SHORT else 1

    def _hand_out(self) -> None:
        """Gives orders that wait to processes, first to those that have none."""
        for has in range(self._most_orders):
            for index, process in enumerate(self._processes):
                if self._waiting and len(process.orders) == has and not process.give(self._waiting.popleft()):
                    self._replace(index)

    def _replace(self, index: int) -> None:
        """Puts a new process in the place of one that has died; its orders wait again, before all others."""
        died = self._processes[index]
        if died.end() == 1:  # not killed: it raised something before it could play
            raise BathysphereError(
                "A process that should play ended before it began, and says above why. If the program that was started "
                "is to blame (it is run in every such process if the world or another part of the run is defined in "
                "it), put what it does, but not what it defines, under: if __name__ == '__main__':"
            )
        self.num_restarts += 1
        self._processes[index] = _Process(self._player)
        if died.orders:
            died.orders[0].tries += 1  # it was playing this one
        for order in reversed(died.orders):
            if order.tries < _MOST_TRIES:
                self._waiting.appendleft(order)
                continue
            self._answers[order.number] = BathysphereError(
                f"Processes that played block {order.number} have died {_MOST_TRIES} times. If memory runs out, lower "
                "--workers or --batch. What was saved can be continued with --resume."
            )


class _Process:
    """A process that plays blocks, one after the other."""

    def __init__(self, player: bytes) -> None:
        context = multiprocessing.get_context("spawn")
        self.pipe, theirs = context.Pipe()
        self.orders: deque[_Order] = deque()  # given and not yet answered
        self._process = context.Process(target=_serve, args=(theirs, player), daemon=True, name="bathysphere-blocks")
        with nullcontext() if b"__main__" in player else _hidden_program():
            self._process.start()
        theirs.close()

    def give(self, order: _Order) -> bool:
        """Sends an order; returns False if the process has died."""
        self.orders.append(order)
        try:
            self.pipe.send(order.number)
            self.pipe.send_bytes(order.knowledge)
        except OSError:
            return False
        return True

    def end(self) -> int | None:
        """Kills the process, which has nothing to tidy up; returns how it ended, if that was before."""
        self._process.kill()
        self._process.join()
        self.pipe.close()
        return self._process.exitcode


@contextmanager
def _hidden_program() -> Iterator[None]:
    """Keeps new processes from running the program that was started. Only what it defines would be a reason to.

    Otherwise a program that trains, and is not written for it, would train in each of them again.
    """
    program = sys.modules["__main__"]
    sys.modules["__main__"] = ModuleType("__main__")
    try:
        yield
    finally:
        sys.modules["__main__"] = program


def _serve(pipe: Connection, packed_player: bytes) -> None:
    """Plays blocks until it is killed: all that a process does."""
    left_to_parent()
    threading.Thread(target=_end_with_parent, daemon=True).start()
    orders: SimpleQueue[tuple[int, bytes]] = SimpleQueue()
    threading.Thread(target=_read, args=(pipe, orders), daemon=True).start()
    answers: SimpleQueue[bytes] = SimpleQueue()
    threading.Thread(target=_write, args=(pipe, answers), daemon=True).start()
    player: BlockPlayer | None = None
    while True:
        number, knowledge = orders.get()
        try:
            player = player or unpacked(packed_player)
            answers.put(pickled(player.play(number, pickle.loads(knowledge))))
        except Exception as error:
            answers.put(pickled(portable(error)))


def _read(pipe: Connection, orders: SimpleQueue[tuple[int, bytes]]) -> None:
    """Reads orders while others are carried out, so that who gives them never waits."""
    while True:
        try:
            orders.put((pipe.recv(), pipe.recv_bytes()))
        except (OSError, EOFError):
            return


def _write(pipe: Connection, answers: SimpleQueue[bytes]) -> None:
    """Sends answers while the next block is played: a pipe has room for little, and the learner may be learning."""
    while True:
        try:
            pipe.send_bytes(answers.get())
        except OSError:
            return


def _end_with_parent() -> None:
    """Ends this process with the one that gives the orders, however that ends."""
    parent = multiprocessing.parent_process()
    assert parent is not None
    parent.join()
    os._exit(1)
