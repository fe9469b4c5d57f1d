"""A memory that generalises: what has happened is believed wherever the bytes that matter are the same."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bathysphere.domains.base import Domain, Imagined, States, Successors, as_rows
from bathysphere.models.memory import MemoryModel
from bathysphere.models.predictable import check_predictable
from bathysphere.models.relevance_kernels import Places, Steps, answer, join
from bathysphere.models.relevant_bytes import relevant_bytes
from bathysphere.models.row_index import RowIndex
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
        told = Successors.empty(len(states), self._known.shape[1], states.shape[1])
        is_known = np.empty(told.rewards.shape, np.bool_)
        where = self._index.find(states), self._place.find(states[:, self._relevant])
        answer(self._steps, self._places, self._others, self._values_seen, states, *where, is_known, *told)
        return Imagined(told, is_known, self._unknown.where(~is_known, states))

    def learn(self, states: States, actions: NDArray[np.integer], outcomes: Successors) -> None:
        """Remembers steps: `actions` [n] in `states`, uint8 [n, S], had `outcomes`, arrays without an action axis."""
        rows = self._index.find(states)
        is_new = ~((rows >= 0) & self._known[rows, actions])
        if not is_new.any():
            return
        super().learn(states, actions, outcomes)
        rows = self._index.find(states[is_new])
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
        seen = self._index.rows[rows]
        about = [part[rows, actions] for part in self._outcomes[1:]]
        did = np.column_stack([self._outcomes.states[rows, actions] - seen, *about])
        kinds = np.unique(did, axis=0, return_inverse=True)[1]
        self._num_chosen_from = len(rows)
        self._sort(relevant_bytes(seen, actions, kinds.ravel()))

    def _sort(self, relevant: list[int]) -> None:
        """Sorts all that is remembered by `relevant` bytes anew."""
        num_actions = self._known.shape[1]
        others = [b for b in np.flatnonzero(self._values_seen.sum(axis=1) > 1).tolist() if b not in relevant]
        self._relevant, self._others = np.array(relevant, np.intp), np.array(others, np.intp)
        self._place = RowIndex(len(relevant))
        self._places = Places.empty(_FIRST_ROOM, num_actions, len(others))
        self._join(*np.nonzero(self._known))

    def _join(self, rows: NDArray[np.int64], actions: NDArray[np.integer]) -> None:
        """Puts steps that are remembered, `actions` [n] in the states of `rows` [n], where they belong."""
        numbers = self._place.add(self._index.rows[rows][:, self._relevant])
        before, room = self._places, len(self._places.first)
        if len(self._place) > room:
            self._places = Places.empty(max(2 * room, len(self._place)), *before.tested.shape[1:3])
            part: Any
            for part, known in zip(self._places, before, strict=True):
                part[:room] = known
        join(self._steps, self._places, self._others, rows, actions.astype(np.int64, copy=False), numbers)

    @property
    def _steps(self) -> Steps:
        return Steps(self._index.rows, self._known, *self._outcomes)

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
        seen = self._index.rows[np.nonzero(self._known)[0]]
        self._values_seen[:] = False
        self._values_seen[np.arange(size), seen] = True
        self._sort(relevant.tolist())
