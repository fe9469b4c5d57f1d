"""A memory that generalises: what has happened is believed wherever the bytes that matter are the same."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bathysphere.domains.base import Domain, Imagined, States, Successors, as_rows
from bathysphere.models.memory import MemoryModel
from bathysphere.models.predictable import check_predictable
from bathysphere.models.relevant_bytes import relevant_bytes
from bathysphere.storage.state import Arrays, require

_SOON = 32  # further steps remembered, after which it is asked again which bytes matter
_GROWTH = 20  # or a further one for so many, if that is more
_FIRST_ROOM = 256  # places


class RelevanceModel(MemoryModel):
    """Remembers every step that was made, and which bytes of a state matter (`relevant_bytes`).

    What was tried is known exactly. What was not is known by the steps remembered that had the same action and the same
    relevant bytes, unless they disagree: bytes change by as much, and reward and end are the same. Two things stay
    unknown for all that: whatever begins with a byte that no step has begun with; and that nothing happens, unless
    each other byte has had its value when nothing happened there. For what is believed to do nothing is never tried
    again, and a door is a wall to those who came without a key.

    Args:
      domain: the world; nothing but the sizes of its rows is used.
      num_members: E.
      spread, seed: of what is unknown, as for `UnknownValues`.
    """

    def __init__(self, domain: Domain, num_members: int, spread: float, seed: int) -> None:
        check_predictable(domain)
        state_size = domain.state_size
        super().__init__(state_size, len(domain.action_names), num_members, spread, seed)
        self.asked: States = np.zeros((0, state_size), np.uint8)  # the latest states it was asked about
        self._values_seen = np.zeros((state_size, 256), np.bool_)  # of each byte, in states that steps began with
        self._num_chosen_from = 0  # pairs known when relevant bytes were chosen
        self._sort([])

    @property
    def relevant(self) -> list[int]:
        """Numbers of the bytes that matter."""
        return [int(number) for number in self._relevant]

    def imagine(self, states: States) -> Imagined:
        """Returns what is known of `states`, uint8 [n, S], and what the rest is worth to each member."""
        self.asked = states = as_rows(states, len(self._values_seen))
        answer, is_known = self._recall(states)
        places = np.array([self._place.get(key.tobytes(), -1) for key in states[:, self._relevant]], np.int64)
        is_familiar = self._values_seen[np.arange(states.shape[1]), states].all(axis=1) & (places >= 0)
        first = self._first[places]
        believed = is_familiar[:, None] & (first >= 0) & ~self._is_disputed[places] & ~is_known
        others, number = states[:, None, self._others], np.arange(len(self._others))
        bits = self._tested[places[:, None, None], np.arange(first.shape[1])[:, None], number, others >> 3]
        believed &= (bits >> (others & 7) & 1).astype(np.bool_).all(axis=2) | ~self._does_nothing[places]
        rows, actions = np.nonzero(believed)
        like = first[rows, actions]
        answer.states[rows, actions] = states[rows] + self._changes(like, actions)
        part: Any
        remembered: Any
        for part, remembered in zip(answer[1:], self._outcomes[1:], strict=True):
            part[rows, actions] = remembered[like, actions]
        is_known |= believed
        return Imagined(answer, is_known, self._unknown.where(~is_known, states))

    def learn(self, states: States, actions: NDArray[np.integer], outcomes: Successors) -> None:
        """Remembers steps: `actions` [n] in `states`, uint8 [n, S], had `outcomes`, arrays without an action axis."""
        _, was_known = self._recall(states)
        super().learn(states, actions, outcomes)
        is_new = ~was_known[np.arange(len(states)), actions]
        rows = np.array([self._row[state.tobytes()] for state in states[is_new]], np.int64)
        varied = (self._values_seen.sum(axis=1) > 1).sum()
        self._values_seen[np.arange(states.shape[1]), states] = True
        varies_more = (self._values_seen.sum(axis=1) > 1).sum() > varied
        known = self.num_known
        if varies_more or known >= self._num_chosen_from + max(_SOON, self._num_chosen_from // _GROWTH):
            self._choose()
        else:
            self._join(rows, actions[is_new])

    def _choose(self) -> None:
        """Asks again which bytes matter. Mutates: all that follows from that."""
        rows, actions = np.nonzero(self._known)
        about = np.column_stack([part[rows, actions] for part in self._outcomes[1:]])
        kinds = np.unique(np.column_stack([self._changes(rows, actions), about]), axis=0, return_inverse=True)[1]
        self._num_chosen_from = len(rows)
        self._sort(relevant_bytes(self._seen[rows], actions, kinds.ravel()))

    def _sort(self, relevant: list[int]) -> None:
        """Sorts all that is remembered by `relevant` bytes anew."""
        num_actions = self._known.shape[1]
        others = [b for b in np.flatnonzero(self._values_seen.sum(axis=1) > 1).tolist() if b not in relevant]
        self._relevant, self._others = np.array(relevant, np.intp), np.array(others, np.intp)
        self._place: dict[bytes, int] = {}
        self._first = np.full((_FIRST_ROOM, num_actions), -1, np.int64)  # the first state remembered of each place
        self._is_disputed, self._does_nothing = np.zeros((2, _FIRST_ROOM, num_actions), np.bool_)
        # A bit for every value that each of the other bytes has had where nothing happened.
        self._tested = np.zeros((_FIRST_ROOM, num_actions, len(others), 32), np.uint8)
        self._join(*np.nonzero(self._known))

    def _join(self, rows: NDArray[np.int64], actions: NDArray[np.int64]) -> None:
        """Puts steps that are remembered, `actions` [n] in the states of `rows` [n], where they belong."""
        states = self._seen[rows]
        keys, others = states[:, self._relevant], states[:, self._others]
        places = np.array([self._place.setdefault(key.tobytes(), len(self._place)) for key in keys], np.int64)
        self._make_places(len(self._place))
        does_nothing = self._does_nothing_at(rows, actions)
        number = np.arange(len(self._others))
        for k, (place, row, action) in enumerate(zip(places.tolist(), rows.tolist(), actions.tolist(), strict=True)):
            first = int(self._first[place, action])
            if first < 0:
                self._first[place, action], self._does_nothing[place, action] = row, does_nothing[k]
            elif not self._is_same(first, row, action):
                self._is_disputed[place, action] = True
            if does_nothing[k]:
                self._tested[place, action, number, others[k] >> 3] |= np.uint8(1) << (others[k] & 7)

    def _changes(self, rows: NDArray[np.int64], actions: NDArray[np.int64]) -> States:
        """Returns by how much `actions` [n] changed the bytes of the states of `rows` [n], uint8 [n, S], modulo 256."""
        changes: States = self._outcomes.states[rows, actions] - self._seen[rows]
        return changes

    def _does_nothing_at(self, rows: NDArray[np.int64], actions: NDArray[np.int64]) -> NDArray[np.bool_]:
        rewards, terminal = self._outcomes.rewards[rows, actions], self._outcomes.terminal[rows, actions]
        does_nothing: NDArray[np.bool_] = ~self._changes(rows, actions).any(axis=1) & (rewards == 0) & ~terminal
        return does_nothing

    def _is_same(self, row: int, other: int, action: int) -> bool:
        """Returns whether `action` did the same in both states."""
        outcomes = self._outcomes
        if any(part[row, action] != part[other, action] for part in outcomes[1:]):
            return False
        one, two = (outcomes.states[r, action] - self._seen[r] for r in (row, other))
        return bool((one == two).all())

    def _make_places(self, num_places: int) -> None:
        more = max(2 * len(self._first), num_places) - len(self._first)
        if num_places <= len(self._first):
            return
        self._first = np.pad(self._first, ((0, more), (0, 0)), constant_values=-1)
        self._is_disputed, self._does_nothing = (
            np.pad(part, ((0, more), (0, 0))) for part in (self._is_disputed, self._does_nothing)
        )
        self._tested = np.pad(self._tested, ((0, more), (0, 0), (0, 0), (0, 0)))

    def state_dict(self) -> Arrays:
        """Returns everything remembered, and what choosing bytes needs to go on bit for bit."""
        return {
            **super().state_dict(),
            "relevant": self._relevant.copy(),
            "num_chosen_from": np.array(self._num_chosen_from),
            "asked": self.asked.copy(),
        }

    def load_state_dict(self, state: Mapping[str, NDArray[Any]]) -> None:
        """Restores what `state_dict` returned."""
        relevant, asked, chosen_from = state["relevant"], state["asked"], int(state["num_chosen_from"])
        size = len(self._values_seen)
        is_fitting = (
            relevant.ndim == 1 and (np.diff(relevant) > 0).all() and ((relevant >= 0) & (relevant < size)).all()
        )
        require(is_fitting, "a byte that matters is none")
        require(asked.ndim == 2 and asked.shape[1] == size, "a model was asked about no states")
        super().load_state_dict(state)
        require(0 <= chosen_from <= self.num_known, "bytes were chosen from steps that nobody remembers")
        self.asked, self._num_chosen_from = asked.copy(), chosen_from
        seen = self._seen[np.nonzero(self._known)[0]]
        self._values_seen[:] = False
        self._values_seen[np.arange(size), seen] = True
        self._sort(relevant.tolist())
