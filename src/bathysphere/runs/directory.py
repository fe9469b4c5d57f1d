"""The run directory: everything a run leaves behind, in one place, none of it code."""

from __future__ import annotations

import itertools
import os
import shutil
import time
from contextlib import suppress
from pathlib import Path
from typing import Any, Self

from bathysphere.config.convert import to_dict
from bathysphere.config.run import LEARNT, RunConfig
from bathysphere.config.saved import CHECKPOINTS, CONFIG, MODEL, check_is_run, load_config
from bathysphere.errors import BathysphereError
from bathysphere.storage.files import read_json, write_file, write_json, writing
from bathysphere.storage.versions import collect_versions

fcntl: Any
try:
    import fcntl
except ImportError:  # Windows: one run may be run twice at the same time
    fcntl = None


_LOOKS, _LOOK_SECONDS = 5, 0.02  # who asks whether a run is running has its lock for a moment


class RunDirectory:
    """Where the files of a run are. `create` begins a new one, `open` finds an existing one."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.config_file = path / CONFIG
        self.versions_file = path / "versions.json"
        self.metrics_file = path / "metrics.jsonl"
        self.result_file = path / "result.json"
        self.model_file = path / MODEL
        self.evaluation_file = path / "evaluation.json"
        self.origin_file = path / "origin.json"
        self.tensorboard = path / "tensorboard"
        self.checkpoints = path / CHECKPOINTS
        self.pictures = path / "pictures"

    @classmethod
    def create(cls, path: Path, config: RunConfig) -> Self:
        """Makes the directory of a new run; refuses one that has anything in it.

        Of several processes that ask for the same one, one gets it.
        """
        directory = cls(path)
        if path.exists() and (not path.is_dir() or any(path.iterdir())):
            raise _taken(path)
        model = None if config.model is None or config.model in LEARNT else _read_model(config.model)
        with writing(path, "Choose another --run-dir."):
            path.mkdir(parents=True, exist_ok=True)
            try:
                directory.checkpoints.mkdir()
            except FileExistsError:
                raise _taken(path) from None
        write_json(directory.versions_file, collect_versions())
        if model is not None:
            write_file(directory.model_file, model)
        directory.save_config(config)  # last: a directory with a config is a run
        return directory

    @classmethod
    def open(cls, path: Path) -> Self:
        """Returns the directory of an existing run."""
        check_is_run(path)
        return cls(path)

    def remove(self) -> None:
        """Removes a run that never began."""
        shutil.rmtree(self.path, ignore_errors=True)

    def load_config(self) -> RunConfig:
        """Returns the run's config."""
        return load_config(self.path)

    def save_config(self, config: RunConfig) -> None:
        """Writes the run's config."""
        write_json(self.config_file, to_dict(config))

    def load_result(self) -> dict[str, Any] | None:
        """Returns how the run ended; None if it has not."""
        if not self.result_file.is_file():
            return None
        result = read_json(self.result_file)
        if not isinstance(result, dict):
            raise BathysphereError(f"{self.result_file} does not hold a result; it is damaged.")
        return result

    def lock(self) -> RunLock:
        """Keeps other processes from running this run; raises if one does."""
        lock = RunLock(self.path)
        for _ in range(_LOOKS):
            if lock.acquire():
                return lock
            lock.release()
            time.sleep(_LOOK_SECONDS)
        raise BathysphereError(f"Another process is running {self.path}. Wait for it, or stop it first.")

    def is_running(self) -> bool:
        """Tells whether a process is running this run now."""
        lock = RunLock(self.path)
        is_free = lock.acquire()
        lock.release()
        return not is_free

    def runner(self) -> int | None:
        """Returns the process that is running this run now; None if there is none, or the system does not tell."""
        try:
            inode, locks = self.path.stat().st_ino, Path("/proc/locks").read_text(encoding="ascii")
        except OSError:
            return None
        for line in locks.splitlines():
            words = line.split()
            if words[1] == "FLOCK" and words[5].rpartition(":")[2] == str(inode) and words[4].isdigit():
                return int(words[4]) or None
        return None


class RunLock:
    """A lock on a folder that ends with its process, however that ends."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._handle: int | None = None

    def acquire(self) -> bool:
        """Tries to take the lock; tells whether it did."""
        if fcntl is None:
            return True
        self._handle = os.open(self._path, os.O_RDONLY)
        try:
            fcntl.flock(self._handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        return True

    def release(self) -> None:
        """Gives the lock back."""
        if self._handle is not None:
            os.close(self._handle)
            self._handle = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.release()


def _taken(path: Path) -> BathysphereError:
    return BathysphereError(
        f"{path} exists and is not an empty folder. Choose another --run-dir, or continue the run "
        f"in it with: bathysphere train --resume {path}"
    )


def _read_model(source: str) -> bytes:
    """Returns the file of a learned model, which the run keeps: the original may change."""
    from bathysphere.models.model_file import find_model, read_model

    read_model(source)  # says what is wrong before anything is written
    return find_model(source).read_bytes()


def next_directory(parent: Path, config: RunConfig) -> Path:
    """Makes an empty folder with the first free name for a run of this preset and seed, and returns it.

    It is PARENT/<preset>-seed<seed>-<n>. Two processes never get the same one.
    """
    stem = f"{config.preset.replace('/', '-')}-seed{config.seed}"
    with writing(parent, "Choose another place with --run-dir."):
        parent.mkdir(parents=True, exist_ok=True)
        for number in itertools.count(1):
            path = parent / f"{stem}-{number}"
            with suppress(FileExistsError):
                path.mkdir()
                return path
    raise AssertionError("numbers do not end")
