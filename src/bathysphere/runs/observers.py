"""All observers of a run as one: those that its domain offers, and those that were handed in."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from numpy.typing import NDArray

from bathysphere.domains.base import Observed, Observer
from bathysphere.errors import BathysphereError
from bathysphere.learning.trainer import Trainer
from bathysphere.planning import Episode
from bathysphere.storage.state import Arrays, prefixed, section

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_TAKEN = ("values", "replay", "pool", "progress", "meter")  # by other parts of a checkpoint


class Observers:
    """Follows a run.

    Args:
      trainer: of the run; its domain may offer observers.
      given: further ones.
    """

    def __init__(self, trainer: Trainer, given: Sequence[Observer] = ()) -> None:
        domain, values = trainer.domain, trainer.values
        offered: list[Observer] = []
        if isinstance(domain, Observed):
            offered = domain.observers(lambda states: values.evaluate(domain.observe(states)))
        self._observers = [*offered, *given]
        self._progress = trainer.progress
        names = [*_TAKEN]
        for observer in self._observers:
            if observer.name in names:
                raise BathysphereError(
                    f"Two parts of the run are called {observer.name!r} in its checkpoints. Give the observer "
                    f"{type(observer).__name__} another name."
                )
            names.append(observer.name)

    def record(self, episodes: Sequence[Episode]) -> None:
        """Shows all observers the episodes that have just finished."""
        for observer in self._observers:
            observer.record(episodes, self._progress.env_steps)

    def columns(self) -> dict[str, Any]:
        """Returns the columns of all observers for a row of the metrics."""
        return {name: value for observer in self._observers for name, value in observer.columns().items()}

    def totals(self) -> dict[str, Any]:
        """Returns the entries of all observers for the run's result."""
        return {name: value for observer in self._observers for name, value in observer.totals().items()}

    def pictures(self) -> dict[str, Figure]:
        """Returns the pictures of all observers, by file name."""
        figures: dict[str, Figure] = {}
        for observer in self._observers:
            figures |= observer.pictures(self._progress.env_steps, self._progress.solved_step)
        return figures

    def state_dict(self) -> Arrays:
        """Returns everything as arrays, each observer's under its name."""
        state: Arrays = {}
        for observer in self._observers:
            state |= prefixed(f"{observer.name}.", observer.state_dict())
        return state

    def load_state_dict(self, state: Mapping[str, NDArray[Any]]) -> None:
        """Restores what `state_dict` returned, from arrays among which there may be others."""
        for observer in self._observers:
            saved = section(state, f"{observer.name}.")
            if not saved and observer.state_dict():
                raise BathysphereError(
                    f"The checkpoint holds nothing of the observer {observer.name!r}, which did not follow the run "
                    "from its beginning. Resume with the observers that the run began with."
                )
            observer.load_state_dict(saved)
