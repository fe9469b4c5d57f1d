"""All observers of a run as one: those that its domain offers, and those that were handed in.

Code of users runs here. What it raises does not get lost, nor does the run: it is kept until the run is saved.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from numpy.typing import NDArray

from bathysphere.domains.base import Observed
from bathysphere.domains.observing import Observer
from bathysphere.errors import BathysphereError
from bathysphere.learning.learner import Learner
from bathysphere.planning import Episode
from bathysphere.runs.callbacks import EpisodeCallback, OnEpisode, is_true, place_of
from bathysphere.storage.state import Arrays, check_kinds, prefixed, section

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_TAKEN = ("values", "replay", "pool", "blocks", "progress", "model", "meter")  # by other parts of a checkpoint


class Observers:
    """Follows a run.

    Args:
      trainer: of the run; its domain may offer observers.
      given: further ones.
      on_episode: called with each finished episode and the run's progress.
    """

    def __init__(self, trainer: Learner, given: Sequence[Observer] = (), on_episode: OnEpisode | None = None) -> None:
        domain, values = trainer.domain, trainer.values
        offered: list[Observer] = []
        if isinstance(domain, Observed):
            offered = domain.observers(lambda states: values.evaluate(domain.observe(states)))
        asked = [] if on_episode is None else [EpisodeCallback(on_episode, trainer.progress)]
        self._observers: list[Observer] = [*offered, *given, *asked]
        self._progress = trainer.progress
        self.wants_stop = False
        """Whether one of them has asked for the end of the run."""
        self.failure: BathysphereError | None = None
        """What says which of them failed, and how; None if none has."""
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
            if is_true(self._call(observer, observer.record, episodes, self._progress.env_steps)):
                self.wants_stop = True

    def columns(self) -> dict[str, Any]:
        """Returns the columns of all observers for a row of the metrics."""
        columns: dict[str, Any] = {}
        for observer in self._observers:
            columns |= self._call(observer, observer.columns) or {}
        return columns

    def totals(self) -> dict[str, Any]:
        """Returns the entries of all observers for the run's result."""
        totals: dict[str, Any] = {}
        for observer in self._observers:
            totals |= self._call(observer, observer.totals) or {}
        return totals

    def pictures(self) -> dict[str, Figure]:
        """Returns the pictures of all observers, by file name."""
        figures: dict[str, Figure] = {}
        for observer in self._observers:
            drawn = self._call(observer, observer.pictures, self._progress.env_steps, self._progress.solved_step)
            figures |= drawn or {}
        return figures

    def raise_failure(self) -> None:
        """Raises what says which observer failed, if one has."""
        if self.failure is not None:
            raise self.failure

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
            check_kinds(saved, observer.state_dict())
            observer.load_state_dict(saved)

    def _call(self, observer: Observer, method: Callable[..., Any], *arguments: Any) -> Any:
        """Returns what a method of an observer returns; None if it fails, which is remembered."""
        try:
            return method(*arguments)
        except Exception as error:
            function = observer.function if isinstance(observer, EpisodeCallback) else method
            told = f"{type(error).__name__}: {error}" if str(error) else type(error).__name__
            failure = BathysphereError(
                f"{place_of(function)} raised {told}. The run was saved before it ended: mend the function, and "
                "continue with resume."
            )
            failure.__cause__ = error
            self.failure = self.failure or failure
            return None
