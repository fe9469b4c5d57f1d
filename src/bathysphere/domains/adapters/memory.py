"""What domains keep of rows they have met: the steps out of them, and how they were reached.

Both are bounded in the same way, in two generations: what is used goes into the young one; when that is full, it
becomes the old one, and the old one is forgotten.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Generic, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from bathysphere.domains.adapters.digests import SIZE
from bathysphere.domains.base import States
from bathysphere.storage.state import require

Thing = TypeVar("Thing")

TRANSITION_BYTES = 1 << 27  # of a generation of transitions
ORIGINS = 1 << 20  # in a generation


class Generations(Generic[Thing]):
    """A mapping that forgets what has not been used for long.

    Args:
      capacity: the sum of weights of a generation.
    """

    def __init__(self, capacity: int) -> None:
        self.young: dict[bytes, Thing] = {}
        self.old: dict[bytes, Thing] = {}
        self._capacity, self._weight = capacity, 0

    def get(self, key: bytes, weight: int = 1) -> Thing | None:
        """Returns what is kept under `key` and makes it young; None if nothing is."""
        found = self.young.get(key)
        if found is None:
            found = self.old.pop(key, None)
            if found is not None:
                self.put(key, found, weight)
        return found

    def put(self, key: bytes, thing: Thing, weight: int = 1) -> None:
        """Keeps a thing that is not kept yet."""
        if self._weight + weight > self._capacity and self.young:
            self.old, self.young, self._weight = self.young, {}, 0
        self.young[key] = thing
        self._weight += weight


class Transitions(NamedTuple):
    """All steps out of one state."""

    states: States  # uint8 [A, S]
    rewards: NDArray[np.float64]  # [A]
    keys: tuple[bytes, ...]  # of the successors, A of them; empty if nobody needs them


class TransitionMemory:
    """Remembers steps across episodes, so that a slow world is asked only once about a state. Changes no number.

    Args:
      state_size: S.
      num_actions: A.
      capacity: bytes of a generation.
    """

    def __init__(self, state_size: int, num_actions: int, capacity: int = TRANSITION_BYTES) -> None:
        self._weight = num_actions * (state_size + 8) + 400
        self._kept: Generations[Transitions] = Generations(capacity)

    def get(self, key: bytes) -> Transitions | None:
        """Returns the steps out of the state with this key, if they are remembered."""
        return self._kept.get(key, self._weight)

    def put(self, key: bytes, steps: Transitions) -> None:
        """Remembers the steps out of a state."""
        self._kept.put(key, steps, self._weight)

    def __len__(self) -> int:
        return len(self._kept.young) + len(self._kept.old)


class Origin(NamedTuple):
    """How a row was reached."""

    parent: bytes | None  # key of the row before; None if the row is a start
    number: int  # of the action, or the seed of the reset


class Origins:
    """How rows were reached, the first way of each: enough to come to them again.

    Invariant: the parents of the young are young, and those of the old are kept too. So whatever is known can be
    reached.

    Args:
      capacity: rows of a generation.
    """

    def __init__(self, capacity: int = ORIGINS) -> None:
        self._young: dict[bytes, Origin] = {}
        self._old: dict[bytes, Origin] = {}
        self._capacity = capacity

    def touch(self, key: bytes) -> Origin | None:
        """Returns how a row was reached, and makes it young with its whole way; None if it is not known."""
        found = self._young.get(key)
        if found is not None or key not in self._old:
            return found
        way = [key]
        while (parent := self._old[way[-1]].parent) is not None and parent in self._old:
            way.append(parent)
        for each in reversed(way):
            self._young[each] = self._old.pop(each)
        return self._young[key]

    def add(self, key: bytes, parent: bytes | None, number: int) -> None:
        """Notes how a row was reached, if that is not known yet."""
        if self.touch(key) is not None:
            return
        if len(self._young) >= self._capacity:
            self._old, self._young = self._young, {}
        if parent is not None and self.touch(parent) is None:
            raise KeyError(parent)
        self._young[key] = Origin(parent, number)

    def __len__(self) -> int:
        return len(self._young) + len(self._old)

    def state_dict(self) -> dict[str, NDArray[Any]]:
        """Returns everything as arrays: keys, uint8 [n, 16]; places of parents among them, or -1; numbers."""
        kept = self._old | self._young
        places = {key: place for place, key in enumerate(kept)}
        parents = [-1 if each.parent is None else places[each.parent] for each in kept.values()]
        return {
            "keys": np.frombuffer(b"".join(kept), np.uint8).reshape(-1, SIZE).copy(),
            "parents": np.array(parents, np.int64),
            "numbers": np.array([each.number for each in kept.values()], np.int64),
            "num_old": np.array(len(self._old)),
        }

    def load_state_dicts(self, states: Sequence[Mapping[str, NDArray[Any]]]) -> None:
        """Adds what the `state_dict` of others returned; of several ways to a row the first is kept."""
        read = [_read(state) for state in states]
        for young, _ in read:
            for key, origin in young.items():
                self._old.pop(key, None)
                self._young.setdefault(key, origin)
        for _, old in read:
            for key, origin in old.items():
                if key not in self._young:
                    self._old.setdefault(key, origin)


def _read(state: Mapping[str, NDArray[Any]]) -> tuple[dict[bytes, Origin], dict[bytes, Origin]]:
    """Returns the young and the old of what `state_dict` returned; refuses ways that nobody has gone."""
    rows, places, numbers, num_old = state["keys"], state["parents"], state["numbers"], int(state["num_old"])
    count, keys = len(rows), [key.tobytes() for key in rows]
    is_fitting = rows.shape == (count, SIZE) and places.shape == numbers.shape == (count,) and 0 <= num_old <= count
    require(is_fitting and len(set(keys)) == count, "ways to states are missing, or there are two to one")
    require(((places >= -1) & (places < count) & (numbers >= -1)).all(), "a way to a state begins nowhere")
    young = places[num_old:]
    require(((young == -1) | (young >= num_old)).all(), "the way to a state was forgotten")
    require(_all_end(places), "a way to a state goes in circles")
    parents = [None if place < 0 else keys[place] for place in places.tolist()]
    origins = map(Origin, parents, numbers.tolist())
    items = list(zip(keys, origins, strict=True))
    return dict(items[num_old:]), dict(items[:num_old])


def _all_end(parents: NDArray[np.int64]) -> bool:
    """Tells whether every way from place to parent, [n], comes to one without a parent, which is -1."""
    further = parents
    for _ in range(len(parents).bit_length()):  # each time twice as far
        further = np.where(further < 0, -1, further[further])
    return bool((further < 0).all())
