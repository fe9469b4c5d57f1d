"""Blocks played on a Ray cluster."""

from __future__ import annotations

import functools
import pickle
import sys
from concurrent.futures import Future
from typing import Any

from bathysphere.errors import BathysphereError
from bathysphere.learning.blocks import BlockPlayer, Knowledge, PlayedBlock
from bathysphere.planning.transport import packed, portable, unpacked
from bathysphere.scale.cluster import Cluster
from bathysphere.storage.versions import collect_versions

_DECIDING = ("python", "bathysphere", "numpy", "numba", "torch")  # versions that must be the same everywhere


class PlayersOnRay:
    """Plays blocks on a cluster. Ray plays a block again if the worker or the machine that played it dies.

    The player and every version of what is learnt are sent to the cluster once.

    Args:
      player: plays the blocks; domain, values and model must be picklable.
      cluster: belongs to the players from now on.
    """

    def __init__(self, player: BlockPlayer, cluster: Cluster) -> None:
        self._cluster = cluster
        self.num_workers = cluster.num_workers
        self.num_restarts = 0
        self._versions = collect_versions()
        self._player = cluster.put((packed(player.config, player, cluster.dumps), self._versions))
        self._knowledge: tuple[int, Any] = (-1, None)  # the newest version, and where it is
        self._answers: dict[int, Future[_Answer]] = {}
        self._is_warned = False

    def submit(self, number: int, version: int, knowledge: Knowledge) -> None:
        """Gives the order to the cluster."""
        if version != self._knowledge[0]:
            self._knowledge = version, self._cluster.put(knowledge)
        self._answers[number] = self._cluster.run(_play, [self._player], number, self._knowledge[1])

    def take(self, number: int, seconds: float) -> PlayedBlock | None:
        """Waits for the block."""
        try:
            answer: _Answer = self._cluster.wait(self._answers[number], seconds)
        except TimeoutError:
            return None
        played, attempt, processor = answer
        del self._answers[number]
        self.num_restarts += attempt
        self._warn(played.worker, processor)
        return played

    def look_after(self) -> None:
        """Does nothing: the cluster looks after itself."""

    def close(self) -> None:
        """Leaves the cluster."""
        self._answers.clear()
        self._cluster.close()

    def _warn(self, worker: str, processor: str | None) -> None:
        """Says once that the processors of a cluster differ."""
        if processor != self._versions["processor"] and not self._is_warned:
            self._is_warned = True
            sys.stderr.write(
                f"The processor of {worker} is of another kind ({processor}) than this one's "
                f"({self._versions['processor']}). Networks may differ in their last bits, and with them the run from "
                "one without this worker.\n"
            )


_Answer = tuple[PlayedBlock, int, str | None]  # the block, how often it was tried before, and the processor's features


def _play(player: list[Any], number: int, knowledge: Knowledge) -> _Answer:
    """Plays a block in a worker of the cluster."""
    import ray

    attempt: int = ray._private.worker.global_worker.core_worker.get_current_task_attempt_number()
    mine, processor = _unpack(player[0])
    try:
        return mine.play(number, knowledge), attempt, processor
    except Exception as error:
        raise portable(error) from None


@functools.lru_cache(1)  # a worker plays many blocks of a run
def _unpack(reference: Any) -> tuple[BlockPlayer, str | None]:
    import ray

    content, theirs = ray.get(reference)
    versions = collect_versions()
    if different := [name for name in _DECIDING if versions[name] != theirs[name]]:
        name = different[0]
        raise BathysphereError(
            f"A worker of the cluster has {name} {versions[name]}, and the learner {theirs[name]}: the run would "
            "depend on who plays. Install the same versions everywhere."
        )
    try:
        player: BlockPlayer = unpacked(content)
    except (ImportError, AttributeError, pickle.UnpicklingError) as error:
        raise BathysphereError(
            f"A worker of the cluster cannot import the world or another part of the run: {error}. Install it on every "
            "machine, or send it along: ray job submit --working-dir . -- bathysphere train ... --ray auto"
        ) from error
    return player, versions["processor"]
