"""A memory of a world with chance: it counts what followed, and the less it has seen, the more it leaves unknown."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bathysphere.domains.base import ImaginedOutcomes, Outcomes, States, Successors
from bathysphere.domains.counting import Count, Counts, add, most_frequent, write
from bathysphere.models.unknown import UnknownValues
from bathysphere.storage.state import Arrays, require

_DOUBT = 1.0  # steps that are counted as having led to the unknown, for every state and action


class ChanceMemory:
    """Counts every step that was made: after n of them, an outcome that came k times has probability k / (n + 1).

    The rest, 1 / (n + 1), is unknown, and worth another number to every member. So what members disagree on gets less
    with every try, and luck, which no number of tries makes less, is in the outcomes.

    Args:
      state_size: S.
      num_actions: A.
      num_members: E.
      spread, seed: of what is unknown, as for `UnknownValues`.
      num_outcomes: C; of more, the most frequent are told, and what they leave is shared out among them.
    """

    def __init__(
        self, state_size: int, num_actions: int, num_members: int, spread: float, seed: int, num_outcomes: int = 8
    ) -> None:
        self._state_size, self._num_actions, self._num_outcomes = state_size, num_actions, num_outcomes
        self._unknown = UnknownValues(num_actions, num_members, spread, seed)
        self._states: dict[bytes, list[Counts]] = {}

    @property
    def num_known(self) -> int:
        """Pairs of state and action that were tried."""
        return sum(bool(counts) for actions in self._states.values() for counts in actions)

    def successors(self, states: States) -> Successors:
        """Returns the most frequent outcome of every action; what was never tried stays where it is."""
        told = self.outcomes(states)
        return Successors(told.states[:, :, 0], told.rewards[:, :, 0], told.terminal[:, :, 0], told.solved[:, :, 0])

    def outcomes(self, states: States) -> Outcomes:
        """Returns what followed, by its share; what was never tried stays where it is."""
        told, unknown, _ = self.imagine_outcomes(states)
        told.probabilities[:, :, 0] += unknown == 1.0
        told.probabilities[:] /= told.probabilities.sum(axis=2, keepdims=True)
        return told

    def imagine_outcomes(self, states: States) -> ImaginedOutcomes:
        """Returns what followed `states`, uint8 [n, S], and how probable something else is and what it is worth."""
        out = Outcomes.none(states, self._num_actions, self._num_outcomes)
        unknown = np.ones(out.rewards.shape[:2])
        for number, state in enumerate(states):
            for action, counts in enumerate(self._states.get(state.tobytes(), ())):
                if not counts:
                    continue
                kept = most_frequent(counts, self._num_outcomes)
                for place, (outcome, count) in enumerate(kept):
                    write(out, (number, action, place), outcome, count)
                    out.probabilities[number, action, place] = count.times
                unknown[number, action] = _DOUBT / (_DOUBT + sum(count.times for count in counts.values()))
        known = out.probabilities.sum(axis=2)
        np.divide(1.0 - unknown, known, out=known, where=known > 0)
        out.probabilities[:] *= known[:, :, None]
        return ImaginedOutcomes(out, unknown, self._unknown.of(states))

    def learn(self, states: States, actions: NDArray[np.integer], outcomes: Successors) -> None:
        """Counts steps: `actions` [n] in `states`, uint8 [n, S], had `outcomes`, arrays without an action axis."""
        told = zip(outcomes.states, *(part.tolist() for part in outcomes[1:]), strict=True)
        for state, action, (after, reward, terminal, solved) in zip(states, actions.tolist(), told, strict=True):
            add(self._counts(state.tobytes())[action], (after.tobytes(), terminal, solved), reward)

    def _counts(self, state: bytes) -> list[Counts]:
        return self._states.setdefault(state, [{} for _ in range(self._num_actions)])

    def state_dict(self) -> Arrays:
        """Returns everything that was counted."""
        found = [
            (state, action, *outcome, *count)
            for state, actions in self._states.items()
            for action, counts in enumerate(actions)
            for outcome, count in counts.items()
        ]
        columns = list(zip(*found, strict=True)) or [()] * 7

        def rows(states: Any) -> States:
            return np.frombuffer(b"".join(states), np.uint8).reshape(-1, self._state_size).copy()

        return {
            "seen": rows(columns[0]),
            "actions": np.array(columns[1], np.int64),
            "states": rows(columns[2]),
            "terminal": np.array(columns[3], np.bool_),
            "solved": np.array(columns[4], np.bool_),
            "times": np.array(columns[5], np.int64),
            "rewards": np.array(columns[6], np.float64),
            "spread": np.array(self._unknown.spread),
        }

    def load_state_dict(self, state: Mapping[str, NDArray[Any]]) -> None:
        """Restores what `state_dict` returned."""
        seen, after, actions, times = (state[name] for name in ("seen", "states", "actions", "times"))
        numbers = [actions, times, *(state[name] for name in ("terminal", "solved", "rewards"))]
        is_fitting = seen.shape == after.shape == (len(actions), self._state_size)
        is_fitting &= all(array.shape == actions.shape for array in numbers)
        require(is_fitting, "what was counted is not of this world")
        require(((actions >= 0) & (actions < self._num_actions)).all(), "a step was counted that was no action")
        require((times >= 1).all() and np.isfinite(state["rewards"]).all(), "an outcome was counted that never came")
        require(bool(np.isfinite(state["spread"])), "what is unknown has no spread")
        self._states = {}
        for row, outcome, *(action, count, terminal, solved, reward) in zip(
            seen, after, *(array.tolist() for array in numbers), strict=True
        ):
            counts = self._counts(row.tobytes())[action]
            key = (outcome.tobytes(), terminal, solved)
            require(key not in counts, "an outcome was counted twice")
            counts[key] = Count(count, reward)
        self._unknown.spread = float(state["spread"])
