"""What follows a training run: observers, the episodes that they see, and the maps that they may make.

A domain may offer observers of its own (`Observed` in base.py); a program can hand more to `train`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from matplotlib.figure import Figure


class TrainingMap(NamedTuple):
    """A map as it was at a moment of training."""

    name: str
    env_steps: int | None  # the moment; None: over all of training
    values: NDArray[np.float64]  # [height, width]; nan where there is none


@runtime_checkable
class MapsOfTraining(Protocol):
    """What an observer may offer besides: maps that it has made, for others to draw."""

    def training_maps(self) -> list[TrainingMap]:
        """Returns the maps so far, oldest first."""
        ...


class FinishedEpisode(Protocol):
    """What observers see of an episode of T steps. The state reached last is not among `states`."""

    @property
    def states(self) -> NDArray[np.uint8]:
        """The state before each step, uint8 [T, S]."""
        ...

    @property
    def actions(self) -> NDArray[np.int32]:
        """The action of each step, int32 [T]."""
        ...

    @property
    def rewards(self) -> NDArray[np.float64]:
        """What each step earned, float64 [T]."""
        ...

    @property
    def solved(self) -> bool:
        """Whether the episode ended in success."""
        ...


class Observer(Protocol):
    """Follows a training run: adds columns to its metrics, entries to its result, and pictures.

    Its state is saved in the run's checkpoints, so that a resumed run has everything from the beginning.
    """

    @property
    def name(self) -> str:
        """What it is called in checkpoints, unique in a run."""
        ...

    def record(self, episodes: Sequence[FinishedEpisode], env_steps: int) -> bool | None:
        """Called after every step of training with the episodes that finished, and once before the first, with none.

        Returns:
          True to end the run after this step; anything else lets it go on.
        """
        ...

    def columns(self) -> dict[str, Any]:
        """Returns columns for a row of the metrics, always the same ones; called once per row."""
        ...

    def totals(self) -> dict[str, Any]:
        """Returns entries for the run's result."""
        ...

    def pictures(self, env_steps: int, solved_step: int | None) -> dict[str, Figure]:
        """Draws what the run's folder of pictures shows, by file name.

        Args:
          env_steps: where the run is.
          solved_step: when it was solved; None if it is not.
        """
        ...

    def state_dict(self) -> dict[str, NDArray[Any]]:
        """Returns everything as arrays."""
        ...

    def load_state_dict(self, state: Mapping[str, NDArray[Any]]) -> None:
        """Restores what `state_dict` returned."""
        ...
