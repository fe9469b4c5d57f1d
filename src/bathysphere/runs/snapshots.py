"""What the ensemble did not know, from the start of training to its end, cell by cell of Deep-sea."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bathysphere.domains import DeepSea
from bathysphere.learning.trainer import Trainer

MAX_SIDE = 200  # larger seas would make checkpoints large
_GROWTH = 1.25  # a snapshot whenever the number of steps has grown by this factor


class Snapshots:
    """Maps of the ensemble's standard deviation at moments that lie closer the earlier they are.

    Attributes:
      steps: the moments, in real steps.
      maps: float32 [side, side] each, as `std_map` makes them; no map at all for other worlds.
    """

    def __init__(self, trainer: Trainer) -> None:
        domain = trainer.domain
        self.steps: list[int] = []
        self.maps: list[NDArray[np.float32]] = []
        self._side = domain.max_steps + 1 if isinstance(domain, DeepSea) else 0
        self._next = 0
        self.take(trainer)

    def record(self, trainer: Trainer) -> None:
        """Takes a snapshot if one is due."""
        if self.steps and trainer.progress.env_steps >= self._next:
            self.take(trainer)

    def take(self, trainer: Trainer) -> None:
        """Takes a snapshot now, if there is none of this moment and the world has maps."""
        step = trainer.progress.env_steps
        if not 0 < self._side <= MAX_SIDE or step in self.steps[-1:]:
            return
        self.steps.append(step)
        self.maps.append(std_map(trainer, self._side))
        self._next = max(int(step * _GROWTH), step + 4 * self._side)

    def state_dict(self) -> dict[str, NDArray[Any]]:
        """Returns everything as arrays."""
        return {
            "steps": np.array(self.steps, np.int64),
            "maps": np.array(self.maps, np.float32).reshape(len(self.maps), self._side, self._side),
            "next": np.array(self._next, np.int64),
        }

    def load_state_dict(self, state: Mapping[str, NDArray[Any]]) -> None:
        """Restores what `state_dict` returned."""
        self.steps, self.maps, self._next = state["steps"].tolist(), list(state["maps"]), int(state["next"])


def std_map(trainer: Trainer, side: int) -> NDArray[np.float32]:
    """Returns the members' standard deviation in every cell of Deep-sea, float32 [side, side].

    It is nan where no value is ever asked for: out of reach, and on the sea bed, where dives end.
    """
    rows, columns = np.indices((side, side), dtype=np.uint16)
    states = np.ascontiguousarray(np.stack([rows.ravel(), columns.ravel()], axis=1)).astype("<u2").view(np.uint8)
    values = trainer.values.evaluate(trainer.domain.observe(states))
    std: NDArray[np.float32] = values.std(axis=1).reshape(side, side)
    std[(columns > rows) | (rows == side - 1)] = np.nan
    return std
