"""Who plays the blocks of a run: chosen anew each time a run is begun or resumed, for the run does not depend on it."""

from __future__ import annotations

import os
from dataclasses import dataclass, replace

from bathysphere.config.run import RunConfig
from bathysphere.errors import BathysphereError
from bathysphere.learning.block_processes import PlayersInProcesses
from bathysphere.learning.blocks import BlockPlayer, Players

_MOST_HERE = 256  # processes


@dataclass(frozen=True)
class Workers:
    """Those who play blocks."""

    number: int = 1
    """How many play at the same time."""
    ray: str | None = None
    """Address of the Ray cluster they are on: HOST:PORT, "auto" for the one that this machine belongs to, "local" for a
    Ray of our own on this machine. None: processes on this machine, without Ray."""
    gpus: float = 0.0
    """Share of a GPU for each, on Ray."""

    def __post_init__(self) -> None:
        if self.number < 1:
            raise BathysphereError(f"workers is {self.number}; expected at least 1.")
        if self.ray is None and self.number > _MOST_HERE:
            raise BathysphereError(
                f"workers is {self.number}; expected at most {_MOST_HERE} processes on one machine. For more, use "
                "--ray."
            )
        if self.gpus < 0:
            raise BathysphereError(f"The share of a GPU is {self.gpus}; expected at least 0.")

    def make_players(self, player: BlockPlayer, num_blocks: int | None = None) -> Players:
        """Returns them, ready for orders; no more of them than there are blocks, if that is known."""
        number = self.number if num_blocks is None else min(self.number, num_blocks)
        if self.ray is None:
            return PlayersInProcesses(player, number)
        from bathysphere.scale.block_players import PlayersOnRay
        from bathysphere.scale.cluster import Cluster

        return PlayersOnRay(player, Cluster(self.ray, number, self.gpus))


def chosen_workers(number: int | None, ray: bool | str = False, gpus: float = 0.0) -> Workers | None:
    """Returns the workers that somebody asks for; None if this process is to play alone.

    Args:
      number: how many; None for one for every core, on Ray, and else for none.
      ray: whether they are on Ray; its address if that is another than this machine's own.
      gpus: as for `Workers`.
    """
    if not ray:
        if gpus:
            raise BathysphereError("A share of a GPU is given to workers on Ray only; add --ray.")
        return None if number is None else Workers(number)
    if number is None:
        number = os.cpu_count() or 1
    return Workers(number, "local" if ray is True else ray, gpus)


def in_blocks(config: RunConfig, workers: Workers | None) -> RunConfig:
    """Returns the config of a new run that `workers` can play: in blocks.

    If their size is not given, blocks in flight together have as many episodes as a batch, so that weights are about as
    old as without blocks.
    """
    if workers is None or config.scale.block is not None:
        return config
    block = max(config.batch // config.scale.distance, 1)
    return replace(config, scale=replace(config.scale, block=block))


def check_workers(config: RunConfig, workers: Workers | None) -> None:
    """Refuses workers that could not help in a run."""
    if workers is None:
        return
    if config.scale.block is None:
        raise BathysphereError(
            "This run does not play in blocks (scale.block), so only one process can play. Leave out the workers, or "
            "begin a new run with them."
        )
    if workers.number > config.scale.distance:
        raise BathysphereError(
            f"workers is {workers.number}, but scale.distance lets {config.scale.distance} blocks be played at the "
            "same time. Ask for fewer workers, or begin a run with a larger scale.distance."
        )
