"""Values that stay as they are for the whole of an episode, while the ones they come from go on learning.

A search graph that outlives updates holds old values beside new ones. Where values fall as they learn, what was seen
before an update looks better than what is seen after it, and exploration may turn back. So episodes can be planned
with the values of their beginning, each with its own.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bathysphere.errors import BathysphereError
from bathysphere.planning.planner import Snapshot, SnapshotValues, Values
from bathysphere.storage.state import MOST, require, section


class EpisodeValues:
    """The values with which the episode in each slot is planned.

    Args:
      batch: number of slots.
      num_members: of the values, E.
    """

    def __init__(self, batch: int, num_members: int) -> None:
        self._num_members = num_members
        self._snapshots: dict[int, Snapshot] = {}  # by number, in order of taking; only those in use
        self._used_by = np.full(batch, -1, np.int64)  # the number of each slot's snapshot
        self._num_taken = 0

    def begin(self, slots: NDArray[np.intp], values: Values) -> None:
        """Gives the episodes that begin in `slots` the values as they are now."""
        if not isinstance(values, SnapshotValues):
            raise BathysphereError(
                f"Planning with the values of an episode's beginning needs values with a snapshot method, and "
                f"{type(values).__name__} has none. Add one that returns a copy, or plan with the newest values."
            )
        self._snapshots[self._num_taken] = values.snapshot()
        self._used_by[slots] = self._num_taken
        self._num_taken += 1
        in_use = set(self._used_by.tolist())
        self._snapshots = {number: snapshot for number, snapshot in self._snapshots.items() if number in in_use}

    def evaluate(self, observations: NDArray[Any], slots: NDArray[np.int64]) -> NDArray[np.float32]:
        """Returns float32 [n, E] for observations [n, ...] of the episodes in `slots`, int64 [n]."""
        answer = np.empty((len(slots), self._num_members), np.float32)
        numbers = self._used_by[slots]
        for number in np.unique(numbers).tolist():
            rows = np.flatnonzero(numbers == number)
            values = self._snapshots[number].evaluate(observations[rows])
            answer[rows] = checked_values(values, len(rows), self._num_members)
        return answer

    def has(self, slots: NDArray[np.bool_]) -> bool:
        """Tells whether all episodes in `slots`, bool [batch], have values."""
        return bool((self._used_by[slots] >= 0).all())

    def state_dict(self) -> dict[str, NDArray[Any]]:
        """Returns all values in use, and which slot uses which."""
        weights = {
            f"{number}.{name}": array
            for number, snapshot in self._snapshots.items()
            for name, array in snapshot.weights().items()
        }
        return {**weights, "used_by": self._used_by.copy(), "num_taken": np.array(self._num_taken)}

    def load_state_dict(self, state: Mapping[str, NDArray[Any]], values: Values) -> None:
        """Restores what `state_dict` returned, with copies of `values` to hold the weights."""
        used_by, num_taken = state["used_by"], int(state["num_taken"])
        require(used_by.shape == self._used_by.shape, "another number of episodes has values of its own")
        require(
            0 <= num_taken <= MOST and (used_by >= -1).all() and (used_by < num_taken).all(),
            "an episode is planned with values that were never taken",
        )
        self._used_by[:] = used_by
        self._num_taken = num_taken
        self._snapshots = {}
        assert isinstance(values, SnapshotValues)  # some were taken before
        for number in np.unique(self._used_by[self._used_by >= 0]).tolist():
            self._snapshots[number] = values.snapshot()
            self._snapshots[number].load_weights(section(state, f"{number}."))


def weighed_unknown(worth: NDArray[np.float32], model_risk: float) -> NDArray[np.float32]:
    """Returns what the unknown is worth, [..., E], with `model_risk` standard deviations of it more to every member."""
    return worth + np.float32(model_risk) * worth.std(axis=-1, keepdims=True) if model_risk else worth


def checked_values(values: NDArray[Any], num_states: int, num_members: int) -> NDArray[np.float32]:
    """Returns a value function's answer as float32 [n, E], or refuses its shape."""
    array = np.ascontiguousarray(values, np.float32)
    if array.shape != (num_states, num_members):
        raise BathysphereError(
            f"values.evaluate returned shape {array.shape}; expected [n, E] = {(num_states, num_members)}."
        )
    return array
