"""Generated boards on disk, so that none is made twice.

A folder for each set of generator settings, in it one for each stream, in it files of `CHUNK` boards. Nothing is lost
if any of it disappears: what is missing, damaged or from elsewhere is made again, and is the same.
"""

from __future__ import annotations

import hashlib
import io
import json
import logging
import os
import re
import tempfile
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from bathysphere.domains.base import States
from bathysphere.domains.sokoban import generator
from bathysphere.domains.sokoban.generator import GeneratorConfig
from bathysphere.errors import BathysphereError

CHUNK = 256  # boards in a file, at most

_OURS = re.compile(r"[0-9a-f]{16}/[0-9]+/([0-9]{6,}\.npz|\..*\.tmp)")  # settings, stream, chunk

# The generator's fields that are younger than the first files: at their defaults, which change no board, they do not
# count, so that those files stay of use.
_LATER_FIELDS = ("smallest", "fewest_boxes", "rooms", "grouped", "shallowest")

_logger = logging.getLogger(__name__)


def cache_folder() -> Path | None:
    """Returns where generated boards are kept: $BATHYSPHERE_CACHE, or bathysphere in the user's cache folder.

    None if this user has no such folder.
    """
    if told := os.environ.get("BATHYSPHERE_CACHE"):
        return Path(told) / "levels"
    try:
        caches = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    except RuntimeError:  # there is no home folder
        return None
    return caches / "bathysphere" / "levels"


def cache_size(folder: Path) -> tuple[int, int]:
    """Returns how many files of boards a cache folder holds, and their bytes."""
    sizes = [file.stat().st_size for file in _files(folder)]
    return len(sizes), sum(sizes)


def clear_cache(folder: Path) -> None:
    """Deletes all boards in a cache folder, and nothing else; what is needed is made again."""
    files = list(_files(folder))
    try:
        for file in files:
            file.unlink(missing_ok=True)
    except OSError as error:
        raise BathysphereError(f"Cannot delete {file}: {error.strerror or error}. Delete {folder} by hand.") from error
    for empty in sorted({parent for file in files for parent in file.parents[:2]}, reverse=True):
        with suppress(OSError):  # not empty after all
            empty.rmdir()


def _files(folder: Path) -> Iterator[Path]:
    """Returns the files of boards, half-written ones of dead processes too."""
    return (file for file in folder.glob("*/*/*") if _OURS.fullmatch("/".join(file.parts[-3:])))


@dataclass
class Chunk:
    """Boards number `CHUNK * k` to `CHUNK * (k + 1) - 1` for some k, as far as they are made."""

    boards: States  # uint8 [CHUNK, S]
    is_made: NDArray[np.bool_]  # bool [CHUNK]
    num_new: int = 0  # boards made since the chunk was last read or written

    @staticmethod
    def empty(size: int) -> Chunk:
        """Returns a chunk of boards of `size` cells, none made yet."""
        return Chunk(np.zeros((CHUNK, size), np.uint8), np.zeros(CHUNK, np.bool_))

    def copy(self) -> Chunk:
        """Returns a copy that shares nothing."""
        return Chunk(self.boards.copy(), self.is_made.copy(), self.num_new)


class BoardCache:
    """The files of one stream.

    Any number of processes may use the same ones: each adds the boards that it has made. If two write at the same
    moment, one of them wins, and what the other added is written with its next boards, or made again some day.

    Args:
      config: of the generator.
      stream: number of the stream.
      folder: where all boards are kept; None keeps none.
    """

    def __init__(self, config: GeneratorConfig, stream: int, folder: Path | None) -> None:
        self._size = config.height * config.width
        settings = {
            name: value
            for name, value in asdict(config).items()
            if name not in _LATER_FIELDS or value != getattr(GeneratorConfig, name)
        }
        # NumPy's random numbers may differ between its versions, and so may the boards.
        settings |= {"version": generator.VERSION, "numpy": np.__version__}
        self._settings = hashlib.sha256(json.dumps(settings, sort_keys=True).encode()).hexdigest()
        self._stream = stream
        self._folder = None if folder is None else folder / self._settings[:16] / str(stream)

    def read(self, index: int) -> Chunk | None:
        """Returns chunk number `index`; None if it is not there or no good."""
        if self._folder is None:
            return None
        path = self._folder / _name(index)
        try:
            with np.load(io.BytesIO(path.read_bytes()), allow_pickle=False) as file:
                boards, is_made, seal = file["boards"], file["is_made"], file["seal"]
            if boards.dtype != np.uint8 or boards.shape != (CHUNK, self._size):
                raise ValueError(f"it holds {boards.dtype} {boards.shape}")
            if is_made.dtype != np.bool_ or seal.tobytes() != self._seal(index, boards, is_made):
                raise ValueError("its seal does not fit what it holds")
        except FileNotFoundError:
            return None
        except Exception as error:  # whatever is wrong with it, the boards can be made again
            _logger.info("%s is no good (%s); its boards are made again.", path, error)
            return None
        return Chunk(boards, is_made)

    def write(self, index: int, chunk: Chunk) -> None:
        """Adds what is made of a chunk to its file. If that fails it warns, once, and keeps nothing from then on."""
        if (folder := self._folder) is None:
            return
        if (there := self.read(index)) is not None:
            chunk = Chunk(np.where(chunk.is_made[:, None], chunk.boards, there.boards), chunk.is_made | there.is_made)
        content = io.BytesIO()
        seal = np.frombuffer(self._seal(index, chunk.boards, chunk.is_made), np.uint8)
        np.savez_compressed(content, boards=chunk.boards, is_made=chunk.is_made, seal=seal)
        try:
            _replace(folder / _name(index), content.getvalue())
        except OSError as error:
            _logger.warning(
                "Cannot keep generated Sokoban boards in %s (%s), so they are made again when needed again. "
                "BATHYSPHERE_CACHE can name another folder.",
                folder,
                error.strerror or error,
            )
            self._folder = None

    def _seal(self, index: int, boards: States, is_made: NDArray[np.bool_]) -> bytes:
        """Returns a fingerprint of the boards and of what they should be."""
        name = f"{self._settings}/{self._stream}/{index}:"
        return hashlib.sha256(name.encode() + is_made.tobytes() + boards.tobytes()).digest()


def _name(index: int) -> str:
    return f"{index:06d}.npz"


def _replace(path: Path, content: bytes) -> None:
    """Writes a file under a name of its own and renames it, so that a reader finds all of it or nothing."""
    path.parent.mkdir(parents=True, exist_ok=True)
    handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=".", suffix=".tmp")
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(content)
        os.replace(temporary, path)
    except BaseException:
        Path(temporary).unlink(missing_ok=True)
        raise
