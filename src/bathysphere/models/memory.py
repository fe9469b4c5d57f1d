"""A model that is learnt while acting, and never errs: it knows what has happened, and knows what it does not know."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bathysphere.domains.base import Imagined, States, Successors
from bathysphere.models.row_index import RowIndex
from bathysphere.models.unknown import UnknownValues
from bathysphere.storage.state import Arrays, require

_FIRST_ROOM = 1024  # states


class MemoryModel:
    """Remembers every step that was made. What was not tried is unknown.

    Args:
      state_size: S.
      num_actions: A.
      num_members: E.
      spread, seed: of what is unknown, as for `UnknownValues`.
    """

    def __init__(self, state_size: int, num_actions: int, num_members: int, spread: float, seed: int) -> None:
        self._unknown = UnknownValues(num_actions, num_members, spread, seed)
        self._index = RowIndex(state_size)  # of the states seen
        self._known = np.zeros((_FIRST_ROOM, num_actions), np.bool_)
        self._outcomes = Successors(*map(np.zeros_like, Successors.empty(_FIRST_ROOM, num_actions, state_size)))

    @property
    def num_known(self) -> int:
        """Pairs of state and action whose outcome is known."""
        return int(np.count_nonzero(self._known[: len(self._index)]))

    def successors(self, states: States) -> Successors:
        """Returns what is known of `states`, uint8 [n, S]; what is not known stays where it is."""
        return self.imagine(states).successors

    def imagine(self, states: States) -> Imagined:
        """Returns what is known of `states`, uint8 [n, S], and what the rest is worth to each member."""
        answer, is_known = self._recall(states)
        return Imagined(answer, is_known, self._unknown.where(~is_known, states))

    def _recall(self, states: States) -> tuple[Successors, NDArray[np.bool_]]:
        """Returns what has happened in `states`, and which of it has."""
        answer = Successors.empty(len(states), self._known.shape[1], states.shape[1])
        rows = self._index.find(states)
        is_known = self._known[rows] & (rows >= 0)[:, None]
        part: Any
        remembered: Any
        for part, remembered in zip(answer, self._outcomes, strict=True):
            part[:] = remembered[rows]
        answer.states[~is_known] = np.broadcast_to(states[:, None], answer.states.shape)[~is_known]
        for part in answer[1:]:
            part[~is_known] = 0
        return answer, is_known

    def learn(self, states: States, actions: NDArray[np.integer], outcomes: Successors) -> None:
        """Remembers steps: `actions` [n] in `states`, uint8 [n, S], had `outcomes`, arrays without an action axis."""
        rows = self._index.add(states)
        self._make_room(len(self._index))
        self._known[rows, actions] = True
        remembered: Any
        for remembered, part in zip(self._outcomes, outcomes, strict=True):
            remembered[rows, actions] = part

    def _make_room(self, num_states: int) -> None:
        room = len(self._known)
        if num_states <= room:
            return
        more = max(2 * room, num_states)

        def grown(array: NDArray[Any]) -> NDArray[Any]:
            larger = np.zeros((more, *array.shape[1:]), array.dtype)
            larger[:room] = array
            return larger

        self._known = grown(self._known)
        self._outcomes = Successors(*(grown(part) for part in self._outcomes))

    def state_dict(self) -> Arrays:
        """Returns everything remembered."""
        used = len(self._index)
        outcomes = {name: part[:used].copy() for name, part in self._outcomes._asdict().items()}
        return {
            "seen": self._index.rows.copy(),
            "known": self._known[:used].copy(),
            "spread": np.array(self._unknown.spread),
            **outcomes,
        }

    def load_state_dict(self, state: Mapping[str, NDArray[Any]]) -> None:
        """Restores what `state_dict` returned."""
        seen = state["seen"]
        outcomes = self._outcomes._asdict()
        is_fitting = seen.ndim == 2 and seen.shape[1] == outcomes["states"].shape[2]
        expected = {"known": self._known.shape, **{name: part.shape for name, part in outcomes.items()}}
        is_fitting &= all(state[name].shape == (len(seen), *shape[1:]) for name, shape in expected.items())
        require(is_fitting, "what is remembered is not of this world")
        require(len(np.unique(seen, axis=0)) == len(seen), "a state is remembered twice")
        require(
            np.isfinite(state["rewards"]).all() and np.isfinite(state["spread"]), "a remembered number is not finite"
        )
        self._unknown.spread = float(state["spread"])
        self._index = RowIndex(seen.shape[1])
        self._index.add(seen)
        self._make_room(len(seen))
        self._known[: len(seen)] = state["known"]
        for name, part in self._outcomes._asdict().items():
            part[: len(seen)] = state[name]
