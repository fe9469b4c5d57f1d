"""Counts and averages of a run: how far it is and how well it plays."""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bathysphere.planning import Episode
from bathysphere.storage.state import MOST, require

WINDOWS = (100, 1000, 10000)
RECENT = 50  # latest episodes: a run counts as solved once it wins more than half of them


class Progress:
    """What has happened so far. Win rates and returns are of the exploring episodes themselves, as in the paper.

    A return is the sum of an episode's rewards, not discounted. A win rate "over n episodes" is an exponential average
    with factor 1 - 1/n, corrected for its start, as the authors log it.
    """

    def __init__(self) -> None:
        self.env_steps = 0  # steps made
        self.imagined_steps = 0  # transitions that the model, or the rules in its place, were asked for
        self.episodes = 0
        self.wins = 0
        self.updates = 0
        self.learnt_steps = 0  # steps of finished episodes
        self.first_solved_step: int | None = None
        self.solved_step: int | None = None
        self.best_return: float | None = None
        self.worst_return: float | None = None
        self._averages = np.zeros(len(WINDOWS))
        self._recent: deque[bool] = deque(maxlen=RECENT)
        self._returns: deque[float] = deque(maxlen=RECENT)

    def record(self, episode: Episode) -> None:
        """Counts a finished episode."""
        self.episodes += 1
        self.learnt_steps += len(episode)
        self.wins += episode.solved
        for k, window in enumerate(WINDOWS):
            self._averages[k] += (episode.solved - self._averages[k]) / window
        self._recent.append(episode.solved)
        earned = episode.total_reward
        self._returns.append(earned)
        self.best_return = earned if self.best_return is None else max(earned, self.best_return)
        self.worst_return = earned if self.worst_return is None else min(earned, self.worst_return)
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

    @property
    def mean_return(self) -> float | None:
        """Mean return of the latest 50 episodes, or of as many as there have been; None before the first."""
        return float(np.mean(self._returns)) if self._returns else None

    def has_return(self, mean_return: float) -> bool:
        """Tells whether the mean return of the latest 50 episodes reaches a number; not before there were 50."""
        return len(self._returns) == RECENT and float(np.mean(self._returns)) >= mean_return

    def state_dict(self) -> dict[str, NDArray[Any]]:
        """Returns everything as arrays."""
        never = -1
        extremes = (self.best_return, self.worst_return)
        return {
            "counts": np.array([self.env_steps, self.episodes, self.wins, self.updates, self.learnt_steps]),
            "imagined_steps": np.array(self.imagined_steps),
            "moments": np.array([never if m is None else m for m in (self.first_solved_step, self.solved_step)]),
            "averages": self._averages.copy(),
            "recent": np.array(self._recent, np.bool_),
            "returns": np.array(self._returns, np.float64),
            "extreme_returns": np.array([np.nan if r is None else r for r in extremes]),
        }

    def load_state_dict(self, state: Mapping[str, NDArray[Any]]) -> None:
        """Restores what `state_dict` returned; what older checkpoints do not hold begins here."""
        steps, episodes, wins, updates, learnt = state["counts"].tolist()
        is_ordered = 0 <= wins <= episodes <= learnt <= steps < MOST and 0 <= updates < MOST
        require(is_ordered, "its counts contradict each other")
        first, solved = state["moments"].tolist()
        require(-1 <= first <= steps and (first >= 0) == (wins > 0), "it was first solved when it was not")
        require(
            -1 <= solved <= steps and (solved < 0 or solved >= first >= 0), "it was solved before its first success"
        )
        averages, recent = state["averages"], state["recent"]
        require(
            averages.shape == (len(WINDOWS),) and ((averages >= 0) & (averages <= 1 + 1e-9)).all(), "a win rate is none"
        )
        require(len(recent) == min(episodes, RECENT), "its latest episodes are not as many as they must be")
        self.env_steps, self.episodes, self.wins, self.updates, self.learnt_steps = (
            steps,
            episodes,
            wins,
            updates,
            learnt,
        )
        self.imagined_steps = int(state.get("imagined_steps", 0))
        require(0 <= self.imagined_steps < MOST, "it imagined less than nothing")
        self.first_solved_step = None if first < 0 else first
        self.solved_step = None if solved < 0 else solved
        self._averages[:] = averages
        self._recent = deque(recent.tolist(), maxlen=RECENT)
        returns = state["returns"].tolist() if "returns" in state else []
        extremes = state["extreme_returns"].tolist() if "extreme_returns" in state else [math.nan] * 2
        require(len(returns) <= len(recent) and all(map(math.isfinite, returns)), "a return is no number")
        best, worst = extremes
        require(math.isnan(best) if not returns else worst <= best < math.inf, "its best return is below its worst")
        self._returns = deque(returns, maxlen=RECENT)
        self.best_return, self.worst_return = (None if math.isnan(extreme) else extreme for extreme in extremes)
