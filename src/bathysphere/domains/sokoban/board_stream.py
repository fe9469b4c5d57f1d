"""The boards of a run: an endless numbered stream from the generator, prepared in the background."""

from __future__ import annotations

import threading
import weakref
from collections import OrderedDict, deque
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bathysphere.domains.base import States
from bathysphere.domains.sokoban.board_cache import CHUNK, BoardCache, Chunk
from bathysphere.domains.sokoban.generator import GeneratorConfig, generate_level

KEEP_EVERY = 16  # new boards of a chunk after which it goes to disk
_MAX_CHUNKS = 64  # in memory; searches side by side are rarely that far apart


class BoardStream:
    """Stream `stream` of the boards that `config` makes: number i is always `generate_level(config, stream, i)`.

    `take` makes the boards that are not there yet. Meanwhile a thread works ahead, so that in a run boards are there
    when they are needed. The thread ends when all that was asked for is made, when the stream is deleted, or with the
    program; the generator's kernels release the interpreter's lock. A pickled stream is the same stream.

    Args:
      config: of the generator.
      stream: number of the stream, from 0.
      folder: where boards are kept between runs (see `cache_folder`); None keeps none.
    """

    def __init__(self, config: GeneratorConfig, stream: int, folder: Path | None = None) -> None:
        self._made_of = (config, stream, folder)
        self._config, self._stream = config, stream
        self._size = config.height * config.width
        self._cache = BoardCache(config, stream, folder)
        self._writing = threading.Lock()  # held while a chunk goes to disk
        self._changed = threading.Condition()  # guards everything below
        self._chunks: OrderedDict[int, Chunk] = OrderedDict()  # the one used last comes last
        self._in_work: set[int] = set()  # boards that some thread is making
        self._asked: dict[int, None] = {}  # boards that the thread is to prepare, in this order
        self._thread: threading.Thread | None = None

    def __reduce__(self) -> tuple[Any, ...]:
        return BoardStream, self._made_of

    def take(self, numbers: NDArray[np.int64], ahead: NDArray[np.int64]) -> States:
        """Returns the boards with these numbers, in any order and as often as asked for, uint8 [n, S].

        Args:
          numbers: int64 [n], from 0.
          ahead: int64 [m], boards to prepare in the background.
        """
        self._prepare([*numbers.tolist(), *ahead.tolist()])
        boards = np.empty((len(numbers), self._size), np.uint8)
        missing = deque(enumerate(numbers.tolist()))  # (row, number)
        while missing:
            with self._changed:
                for _ in range(len(missing)):
                    row, number = missing.popleft()
                    chunk, offset = self._find(number)
                    if chunk.is_made[offset]:
                        boards[row] = chunk.boards[offset]
                    elif number in self._in_work:
                        missing.append((row, number))
                    else:
                        self._in_work.add(number)
                        break
                else:
                    if missing:  # other threads make them all
                        self._changed.wait()
                    continue
            boards[row] = self._make(number)
        return boards

    def _find(self, number: int) -> tuple[Chunk, int]:
        """Returns where a board belongs."""
        index, offset = divmod(number, CHUNK)
        if index not in self._chunks:
            self._chunks[index] = self._cache.read(index) or Chunk.empty(self._size)
            if len(self._chunks) > _MAX_CHUNKS:
                self._chunks.popitem(last=False)
        self._chunks.move_to_end(index)
        return self._chunks[index], offset

    def _make(self, number: int) -> States:
        """Makes a board that is marked as in work, uint8 [S], and keeps its chunk if much of that is new."""
        try:
            board = generate_level(self._config, self._stream, number).level.grid.ravel()
            with self._changed:
                chunk, offset = self._find(number)
                chunk.boards[offset], chunk.is_made[offset] = board, True
                chunk.num_new += 1
                is_due = chunk.num_new >= KEEP_EVERY or bool(chunk.is_made.all())
                chunk.num_new = 0 if is_due else chunk.num_new
        finally:
            with self._changed:
                self._in_work.discard(number)
                self._changed.notify_all()
        if is_due:
            with self._writing:  # one after the other, so that newer boards are not replaced by older ones
                with self._changed:
                    news = chunk.copy()  # because other threads go on making boards
                self._cache.write(number // CHUNK, news)
        return board

    def _prepare(self, numbers: list[int]) -> None:
        """Lets the thread make what is missing of these boards."""
        with self._changed:
            for number in numbers:
                chunk, offset = self._find(number)
                if not chunk.is_made[offset]:
                    self._asked[number] = None
            if self._asked and (self._thread is None or not self._thread.is_alive()):
                self._thread = threading.Thread(target=_work_ahead, args=(weakref.ref(self),), name="sokoban-boards")
                self._thread.start()

    def _prepare_one(self) -> bool:
        """Makes one of the boards asked for; returns False when there is none left."""
        with self._changed:
            while self._asked:
                number = next(iter(self._asked))
                del self._asked[number]
                chunk, offset = self._find(number)
                if not chunk.is_made[offset] and number not in self._in_work:
                    self._in_work.add(number)
                    break
            else:
                self._thread = None  # so that `_prepare` does not take this one, about to end, for at work
                return False
        try:
            self._make(number)
        except Exception:  # `take` meets it again and raises it
            return False
        return True


def _work_ahead(stream: weakref.ref[BoardStream]) -> None:
    """Prepares boards until there are enough. Holds the stream only while it makes one."""
    while threading.main_thread().is_alive() and (held := stream()) is not None and held._prepare_one():
        del held
