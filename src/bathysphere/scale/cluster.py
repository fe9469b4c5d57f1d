"""A connection to a Ray cluster, or to a Ray of our own on this machine."""

from __future__ import annotations

import os
import socket
import sys
import tempfile
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from contextlib import contextmanager
from typing import Any

from bathysphere.errors import BathysphereError

LOCAL = "local"  # the address of a Ray of our own
_REACH_SECONDS = 5.0  # that a cluster has to answer
_STORE_BYTES = 256 * 2**20  # of a Ray of our own: weights and blocks are small
_STDERR = 2  # its file descriptor
_MOST_RETRIES = 100  # of one task whose workers die


class Cluster:
    """Runs functions on a cluster, at most `num_workers` at a time; those whose workers die are run again.

    Args:
      address: of the cluster, as HOST:PORT, "auto" for the one that this machine belongs to, or "local" for a Ray of
        our own, which ends with this object.
      num_workers: functions that run at the same time.
      gpus: share of a GPU that each of them needs.
    """

    def __init__(self, address: str, num_workers: int, gpus: float = 0.0) -> None:
        self._ray = _import_ray()
        self.num_workers = num_workers
        self._gpus = gpus
        self._waiting: list[tuple[Future[Any], Callable[[], Any]]] = []
        self._num_running = 0
        self._lock = threading.Lock()  # guards both: ends are told by another thread
        self._is_ours = not self._ray.is_initialized()
        if self._is_ours:
            _connect(self._ray, address, num_workers, gpus)
        self._check_resources()

    def dumps(self, thing: Any) -> bytes:
        """Pickles something; classes of the program that was started travel along."""
        pickled: bytes = self._ray.cloudpickle.dumps(thing)
        return pickled

    def put(self, thing: Any) -> Any:
        """Puts something where every worker can get it, once; returns what to hand to `run` instead of it."""
        with self._telling():
            return self._ray.put(thing)

    def run(self, function: Callable[..., Any], *arguments: Any) -> Future[Any]:
        """Has a function of a module called on the cluster; what `put` returned reaches it as what was put."""
        remote = self._ray.remote(function).options(num_cpus=1, num_gpus=self._gpus, max_retries=_MOST_RETRIES)
        answer: Future[Any] = Future()
        with self._lock:
            self._waiting.append((answer, lambda: remote.remote(*arguments)))
        self._start()
        return answer

    def wait(self, answer: Future[Any], seconds: float | None) -> Any:
        """Returns what a function that was run returned, or raises what it raised.

        Raises:
          TimeoutError: if that takes longer than `seconds`, if there are any.
        """
        with self._telling():
            return answer.result(seconds)

    def close(self) -> None:
        """Forgets what is running, and ends a Ray of our own."""
        with self._lock:
            self._waiting.clear()
        if self._is_ours:
            self._ray.shutdown()

    def _start(self) -> None:
        """Starts what waits, as far as there is room. Nobody may hold the lock: what has ended by then is told here."""
        while True:
            with self._lock:
                if not self._waiting or self._num_running >= self.num_workers:
                    return
                answer, start = self._waiting.pop(0)
                self._num_running += 1
            start().future().add_done_callback(lambda done, answer=answer: self._end(answer, done))

    def _end(self, answer: Future[Any], done: Future[Any]) -> None:
        with self._lock:
            self._num_running -= 1
        self._start()
        if (error := done.exception()) is None:
            answer.set_result(done.result())
        else:
            answer.set_exception(error)

    def _check_resources(self) -> None:
        there = self._ray.cluster_resources()
        for kind, share in (("CPU", 1.0), ("GPU", self._gpus)):
            if there.get(kind, 0.0) < share:
                self.close()
                raise BathysphereError(
                    f"The cluster has {there.get(kind, 0.0):g} {kind}s, and a worker needs {share:g}. Add a machine to "
                    "it, or ask for less."
                )

    @contextmanager
    def _telling(self) -> Iterator[None]:
        """Turns what goes wrong in Ray into sentences."""
        errors = self._ray.exceptions
        try:
            yield
        except (errors.ObjectStoreFullError, errors.OutOfDiskError) as error:
            raise BathysphereError(
                "The cluster's object store is full, and so is the disk it spills to. Start Ray with a larger one (ray "
                "start --object-store-memory BYTES), or make blocks smaller (scale.block). What was saved can be "
                "continued with --resume."
            ) from error
        except errors.OutOfMemoryError as error:
            raise BathysphereError(
                "A machine of the cluster has no memory left for the workers on it. Lower the batch, or start its Ray "
                "with fewer CPUs (ray start --num-cpus). What was saved can be continued with --resume."
            ) from error
        except errors.RayTaskError as error:
            cause = error.cause
            if isinstance(cause, BathysphereError):
                raise cause from None
            raise
        except errors.RayError as error:
            raise BathysphereError(
                f"The cluster could not do its work: {_first_line(error)} What was saved can be continued with "
                "--resume, also on another cluster."
            ) from error


def _import_ray() -> Any:
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    os.environ.setdefault("RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO", "0")
    try:
        import ray
    except ImportError as error:
        raise BathysphereError("Ray is not installed. Install it: pip install 'bathysphere[ray]'") from error
    return ray


def _connect(ray: Any, address: str, num_workers: int, gpus: float) -> None:
    quiet = {"logging_level": "ERROR", "log_to_driver": False}
    if address == LOCAL:
        own = {
            **{"num_cpus": num_workers, "include_dashboard": False, "object_store_memory": _STORE_BYTES},
            # Ray has its workers give way to all else (niceness 15): beside other work they would never begin.
            "_system_config": {"worker_niceness": 0},
        }
        try:
            ray.init(address=LOCAL, **own, **quiet)
        except Exception as error:  # Ray raises just that where a machine is too slow
            raise BathysphereError(
                f"Ray could not be started on this machine: {_first_line(error)} Try again when it has less to do, "
                "or leave out --ray: --workers alone plays in processes."
            ) from error
        return
    _check_reachable(address)
    try:
        with _overheard() as said:
            ray.init(address=address, **quiet)
    except (RuntimeError, ValueError, OSError, ray.exceptions.RayError) as error:
        if "ersion mismatch" in str(error):
            raise BathysphereError(
                f"The cluster at {address} has another version of Ray or Python than this process. Install the same "
                f"ones everywhere. Ray says: {' '.join(str(error).split())}"
            ) from error
        if "ailed to connect" in str(error) or isinstance(error, ray.exceptions.AuthenticationError):
            reason = said[-1].rpartition("RPC error: ")[2] if said else _first_line(error)
            raise BathysphereError(
                f"Ray could not join the cluster at {address}: {reason.rstrip('.')}. Name the address that 'ray start "
                "--head' printed. If the cluster asks for a token, set RAY_AUTH_MODE=token here, and give all machines "
                "the same token ('ray get-auth-token' prints it)."
            ) from error
        raise BathysphereError(
            f"There is no Ray cluster at {address}: {_first_line(error)} Start one with 'ray start --head', and join "
            "it from this machine with 'ray start --address=HOST:PORT'."
        ) from error


def _check_reachable(address: str) -> None:
    """Refuses an address where nobody listens; Ray itself would try for minutes."""
    host, _, port = address.rpartition(":")
    if not host or not port.isdigit():
        return  # "auto", or a name that Ray will refuse
    try:
        socket.create_connection((host, int(port)), _REACH_SECONDS).close()
    except OSError as error:
        raise BathysphereError(
            f"There is no Ray cluster at {address}: {error.strerror or error}. Start one with 'ray start --head' and "
            "use the address it prints, or leave out the address for a Ray on this machine alone."
        ) from error


@contextmanager
def _overheard() -> Iterator[list[str]]:
    """Keeps from the terminal what Ray's own code, which knows nothing of Python's stderr, complains of meanwhile.

    The lines are in the list afterwards.
    """
    said = list[str]()
    with tempfile.TemporaryFile("w+", errors="replace") as file:
        sys.stderr.flush()
        stderr = os.dup(_STDERR)
        os.dup2(file.fileno(), _STDERR)
        try:
            yield said
        finally:
            os.dup2(stderr, _STDERR)
            os.close(stderr)
            file.seek(0)
            said += file.read().splitlines()


def _first_line(error: Exception) -> str:
    return str(error).strip().split("\n")[0].rstrip(".") + "."
