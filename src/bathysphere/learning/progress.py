"""Counts and averages of a run: how far it is and how well it plays."""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bathysphere.planning import Episode

WINDOWS = (100, 1000, 10000)
RECENT = 50  # a run counts as solved once it wins more than half of this many latest episodes


class Progress:
    """What has happened so far. Win rates are of the exploring episodes themselves, as in the paper.

    A win rate "over n episodes" is an exponential average with factor 1 - 1/n, corrected for its start, as the
    authors log it.
    """

    def __init__(self) -> None:
        self.env_steps = 0  # steps made
        self.episodes = 0
        self.wins = 0
        self.updates = 0
        self.learnt_steps = 0  # steps of finished episodes
        self.first_solved_step: int | None = None
        self.solved_step: int | None = None
        self._averages = np.zeros(len(WINDOWS))
        self._recent: deque[bool] = deque(maxlen=RECENT)

    def record(self, episode: Episode) -> None:
        """Counts a finished episode."""
        self.episodes += 1
        self.learnt_steps += len(episode)
        self.wins += episode.solved
        for k, window in enumerate(WINDOWS):
            self._averages[k] += (episode.solved - self._averages[k]) / window
        self._recent.append(episode.solved)
        if episode.solved and self.first_solved_step is None:
            self.first_solved_step = self.env_steps
        if self.solved_step is None and len(self._recent) == RECENT and 2 * sum(self._recent) > RECENT:
            self.solved_step = self.env_steps

    def win_rate(self, window: int) -> float:
        """Returns the win rate over `window` (100, 1000 or 10000) episodes; 0 before the first."""
        if self.episodes == 0:
            return 0.0
        correction = 1.0 - (1.0 - 1.0 / window) ** self.episodes
        return min(float(self._averages[WINDOWS.index(window)] / correction), 1.0)  # rounding can lead above it

    def state_dict(self) -> dict[str, NDArray[Any]]:
        """Returns everything as arrays."""
        never = -1
        return {
            "counts": np.array([self.env_steps, self.episodes, self.wins, self.updates, self.learnt_steps]),
            "moments": np.array([never if m is None else m for m in (self.first_solved_step, self.solved_step)]),
            "averages": self._averages.copy(),
            "recent": np.array(self._recent, np.bool_),
        }

    def load_state_dict(self, state: Mapping[str, NDArray[Any]]) -> None:
        """Restores what `state_dict` returned."""
        self.env_steps, self.episodes, self.wins, self.updates, self.learnt_steps = state["counts"].tolist()
        first, solved = state["moments"].tolist()
        self.first_solved_step = None if first < 0 else first
        self.solved_step = None if solved < 0 else solved
        self._averages[:] = state["averages"]
        self._recent = deque(state["recent"].tolist(), maxlen=RECENT)
