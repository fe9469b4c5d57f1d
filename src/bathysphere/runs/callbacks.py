"""What programs hand to `train` to follow a run, and to end it."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from bathysphere.domains.observing import FinishedEpisode
from bathysphere.learning.progress import Progress
from bathysphere.planning import Episode

if TYPE_CHECKING:
    from matplotlib.figure import Figure

OnEpisode = Callable[[Episode, Progress], Any]


class Callback:
    """An observer that does nothing: extend it, and override what you need.

    What `record` returns decides whether the run goes on: True ends it, with `stopped_by` "callback".

        class Longest(bathysphere.Callback):
            steps = 0

            def record(self, episodes, env_steps):
                self.steps = max([self.steps, *(len(episode.actions) for episode in episodes)])

            def columns(self):
                return {"longest_episode": self.steps}

        bathysphere.train("deep-sea", observers=[Longest()])
    """

    @property
    def name(self) -> str:
        """What the callback is called in checkpoints, unique in a run: the name of its class."""
        return type(self).__name__

    def record(self, episodes: Sequence[FinishedEpisode], env_steps: int) -> bool | None:
        """Called after every step of training with the episodes that finished, and once before the first, with none."""
        return None

    def columns(self) -> dict[str, Any]:
        """Returns columns for a row of the metrics, always the same ones."""
        return {}

    def totals(self) -> dict[str, Any]:
        """Returns entries for the run's result."""
        return {}

    def pictures(self, env_steps: int, solved_step: int | None) -> dict[str, Figure]:
        """Draws what the run's folder of pictures shows, by file name."""
        return {}

    def state_dict(self) -> dict[str, NDArray[Any]]:
        """Returns what a resumed run needs of the callback, as arrays."""
        return {}

    def load_state_dict(self, state: Mapping[str, NDArray[Any]]) -> None:
        """Restores what `state_dict` returned."""


class EpisodeCallback(Callback):
    """Calls a function with each finished episode and the run's progress."""

    name = "on_episode"

    def __init__(self, function: OnEpisode, progress: Progress) -> None:
        self.function, self._progress = function, progress

    def record(self, episodes: Sequence[Any], env_steps: int) -> bool:
        """Calls it for all episodes, even if one of them ends the run."""
        answers = [self.function(episode, self._progress) for episode in episodes]
        return any(map(is_true, answers))


def is_true(answer: Any) -> bool:
    """Tells whether an answer is True itself; other things that are true do not end a run."""
    return isinstance(answer, bool | np.bool_) and bool(answer)


def place_of(function: Any) -> str:
    """Returns what a function is called and where it is written, for error messages."""
    name = getattr(function, "__qualname__", type(function).__name__)
    try:
        return f"{name} ({inspect.getsourcefile(function)}, line {inspect.getsourcelines(function)[1]})"
    except (OSError, TypeError):  # typed in, or of no file
        return str(name)
