"""Where the runs of a study go on: each in a process of its own with one thread, here or on a machine of a cluster."""

from __future__ import annotations

import os
import platform
import subprocess
import sys
import time
from collections.abc import Callable
from concurrent.futures import CancelledError
from pathlib import Path
from typing import Protocol

from bathysphere.domains.user_code import named_modules
from bathysphere.errors import BathysphereError
from bathysphere.scale.cluster import Cluster

ERRORS = "errors.txt"  # in the run directory: what the process wrote to standard error
_STOP = "stop"  # in the run directory: a file that tells a process on another machine to save and stop
_THREADS = ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS", "NUMBA_NUM_THREADS")
_LOOK_SECONDS = 0.2  # between two looks at a process on a cluster


class RunProcess(Protocol):
    """The process of a run."""

    def poll(self) -> int | None:
        """Returns its exit code; None while it goes on."""
        ...

    def stop(self) -> None:
        """Has it save and stop soon."""
        ...

    def wait(self) -> int:
        """Waits for its exit code."""
        ...

    def kill(self) -> None:
        """Ends it at once."""
        ...


Launch = Callable[[Path, list[str]], RunProcess]
"""Starts the process of the run in a directory, with options of `studies/worker.py`."""


class ProcessHere:
    """A process on this machine. It stops by itself when this one is gone."""

    def __init__(self, run_dir: Path, options: list[str]) -> None:
        self._process = _start(run_dir, [*options, *_imports()], _module_folders())
        self.poll, self.wait, self.kill = self._process.poll, self._process.wait, self._process.kill

    def stop(self) -> None:
        """Closes its input."""
        assert self._process.stdin is not None
        self._process.stdin.close()


class ProcessOnCluster:
    """A process on some machine of a cluster, which must see the run directory. If the machine dies, another goes on.

    Args:
      cluster: where.
      run_dir, options: as for `Launch`.
    """

    def __init__(self, cluster: Cluster, run_dir: Path, options: list[str]) -> None:
        self._cluster, self._run_dir = cluster, run_dir.resolve()
        (self._run_dir / _STOP).unlink(missing_ok=True)
        self._answer = cluster.run(_run, str(self._run_dir), [*options, *_imports()])

    def poll(self) -> int | None:
        """Asks whether Ray has an answer."""
        return self.wait() if self._answer.done() else None

    def stop(self) -> None:
        """Leaves a file that the process looks for."""
        (self._run_dir / _STOP).touch()

    def wait(self) -> int:
        """Waits for Ray's answer; what Ray could not do is told as by a process."""
        try:
            code: int = self._cluster.wait(self._answer, None)
        except (BathysphereError, CancelledError) as error:
            (self._run_dir / ERRORS).write_text(f"{error}\n", encoding="utf-8")
            code = 2
        (self._run_dir / _STOP).unlink(missing_ok=True)
        return code

    def kill(self) -> None:
        """Has it stop: Ray's workers end with the program that asked for them."""
        self.stop()


def _run(run_dir: str, options: list[str]) -> int:
    """Runs a run in a worker of the cluster."""
    path = Path(run_dir)
    if not path.is_dir():
        raise BathysphereError(
            f"{platform.node()}, a machine of the cluster, does not see {path}. Put the results on a disk that all "
            "machines share, under the same name everywhere (--out)."
        )
    process = _start(path, options, _module_folders())
    assert process.stdin is not None
    while process.poll() is None:
        if (path / _STOP).exists() and not process.stdin.closed:
            process.stdin.close()
        time.sleep(_LOOK_SECONDS)
    return process.returncode


def _start(run_dir: Path, options: list[str], folders: list[str]) -> subprocess.Popen[bytes]:
    with (run_dir / ERRORS).open("wb") as errors:
        return subprocess.Popen(
            [sys.executable, "-m", "bathysphere.studies.worker", str(run_dir), *options],
            stdin=subprocess.PIPE,  # its end tells the process to stop, also when we are gone
            stdout=subprocess.DEVNULL,
            stderr=errors,
            env={**os.environ, **dict.fromkeys(_THREADS, "1"), "PYTHONPATH": os.pathsep.join(folders)},
            start_new_session=True,  # Ctrl-C is for us; we pass it on
        )


def _imports() -> list[str]:
    return [word for module in named_modules() for word in ("--import", module)]


def _module_folders() -> list[str]:
    """Returns where a run's process looks for modules: where this one does, for the world may be the user's own."""
    told = os.environ.get("PYTHONPATH", "").split(os.pathsep)
    return list(dict.fromkeys(filter(None, [*told, *sys.path])))
