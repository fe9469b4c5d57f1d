"""A ring of episodes in flat arrays."""

from __future__ import annotations

import numpy as np
from numba import njit
from numpy.typing import NDArray

from bathysphere.domains.base import States
from bathysphere.errors import BathysphereError
from bathysphere.storage.state import MOST, Arrays, require


@njit(cache=True, nogil=True)
def read_entries(
    draws: NDArray[np.float64],
    by_length: bool,
    first: int,
    last: int,
    lengths: NDArray[np.int64],
    ends: NDArray[np.int64],
    max_length: int,
    states: NDArray[np.uint8],
    targets: NDArray[np.float32],
    mask_bits: NDArray[np.uint8],
    out_states: NDArray[np.uint8],
    out_targets: NDArray[np.float32],
    out_mask: NDArray[np.bool_],
) -> None:
    """Copies drawn entries of a store into columns first..last-1 of every batch.

    Invariant: episode g's entries are rows g * max_length .. g * max_length + lengths[g] - 1.

    Args:
      draws: uniform in [0, 1), float64 [u, b, 2]. By episode: the first number picks the episode, the second the
        entry in it; by length: the first picks among all entries of all episodes, the second is not used.
      by_length: which of the two.
      first: first column to fill.
      last: one past the last column to fill.
      lengths: int64 [G] of the episodes held, each at least 1.
      ends: int64 [G], cumulative sum of lengths; not used by episode.
      max_length: rows per episode.
      states: uint8 [capacity * max_length, S].
      targets: float32 [capacity * max_length, M].
      mask_bits: uint8 [capacity * max_length, ceil(E / 8)], member e in bit e % 8 of byte e // 8.
      out_states: uint8 [u, b, S].
      out_targets: float32 [u, b, M].
      out_mask: bool [u, b, E].

    Mutates: out_states, out_targets, out_mask.
    """
    num_episodes = lengths.size
    for u in range(draws.shape[0]):
        for b in range(first, last):
            if by_length:
                entry = int(draws[u, b, 0] * ends[num_episodes - 1])
                low, high = 0, num_episodes - 1  # find the first episode that ends beyond the entry
                while low < high:
                    middle = (low + high) // 2
                    if ends[middle] > entry:
                        high = middle
                    else:
                        low = middle + 1
                episode = low
                position = entry - (ends[episode] - lengths[episode])
            else:
                episode = int(draws[u, b, 0] * num_episodes)
                position = int(draws[u, b, 1] * lengths[episode])
            row = episode * max_length + position
            for s in range(states.shape[1]):
                out_states[u, b, s] = states[row, s]
            for m in range(targets.shape[1]):
                out_targets[u, b, m] = targets[row, m]
            for e in range(out_mask.shape[2]):
                out_mask[u, b, e] = (mask_bits[row, e >> 3] >> (e & 7)) & 1


@njit(cache=True, nogil=True)
def walk_back(draws: NDArray[np.float64], first: int, last: int, lengths: NDArray[np.int64], newest: int) -> None:
    """Makes draws of single entries draws of whole episodes, each from its last entry to its first.

    Invariant: the next batch has in every column the entry before that of this batch, or the last one of another
    episode if this was the first.

    Args:
      draws: uniform in [0, 1), float64 [u, b, 2]; the first number, where a walk begins, picks its episode.
      first: first column to change.
      last: one past the last column to change.
      lengths: int64 [G] of the episodes held.
      newest: the episode with which the first column begins.

    Mutates: draws, so that `read_entries` reads the walks by episode.
    """
    num_batches, num_episodes = draws.shape[0], lengths.size
    for b in range(first, last):
        u = 0
        while u < num_batches:
            episode = newest if u == 0 and b == first else int(draws[u, b, 0] * num_episodes)
            position = lengths[episode] - 1
            while position >= 0 and u < num_batches:
                draws[u, b, 0] = (episode + 0.5) / num_episodes
                draws[u, b, 1] = (position + 0.5) / lengths[episode]
                position -= 1
                u += 1


class EpisodeStore:
    """Up to `capacity` episodes; a new one replaces the oldest.

    Every episode has a slot of `max_length` rows. The arrays are allocated at once and touched as episodes
    arrive, so an operating system that commits memory on first use charges only for what is filled.
    """

    def __init__(self, capacity: int, max_length: int, state_size: int, num_members: int, num_targets: int) -> None:
        self.state_size, self.num_members, self.num_targets = state_size, num_members, num_targets
        self.num_added = 0
        self._capacity, self._max_length = capacity, max_length
        num_rows = capacity * max_length
        self._states = np.zeros((num_rows, state_size), np.uint8)
        self._targets = np.zeros((num_rows, num_targets), np.float32)
        self._mask_bits = np.zeros((num_rows, (num_members + 7) // 8), np.uint8)
        self._lengths = np.zeros(capacity, np.int64)

    @property
    def num_episodes(self) -> int:
        """Episodes held now."""
        return min(self.num_added, self._capacity)

    def add(self, states: States, targets: NDArray[np.floating], mask: NDArray[np.bool_]) -> None:
        """Stores an episode: states uint8 [T, S], targets float [T, M], mask bool [T, E]."""
        length = len(states)
        expected = ((length, self.state_size), (length, self.num_targets), (length, self.num_members))
        arrived = (states.shape, targets.shape, mask.shape)
        if arrived != expected or not 1 <= length <= self._max_length:
            raise BathysphereError(
                f"an episode's states, targets and mask have shapes {arrived}; expected {expected} "
                f"with 1 to {self._max_length} states, the step limit that replay was built for."
            )
        slot = self.num_added % self._capacity
        rows = slice(slot * self._max_length, slot * self._max_length + length)
        self._states[rows] = states
        self._targets[rows] = targets
        self._mask_bits[rows] = np.packbits(mask, axis=1, bitorder="little")
        self._lengths[slot] = length
        self.num_added += 1

    def walk_back(self, draws: NDArray[np.float64], first: int, last: int) -> None:
        """Makes draws those of whole episodes, from end to beginning; see the kernel. Mutates: draws."""
        newest = (self.num_added - 1) % self._capacity
        walk_back(draws, first, last, self._lengths[: self.num_episodes], newest)

    def read(
        self,
        draws: NDArray[np.float64],
        by_length: bool,
        first: int,
        last: int,
        states: States,
        targets: NDArray[np.float32],
        mask: NDArray[np.bool_],
    ) -> None:
        """Copies drawn entries out; see `read_entries`.

        Mutates: states, targets, mask.
        """
        lengths = self._lengths[: self.num_episodes]
        read_entries(
            draws,
            by_length,
            first,
            last,
            lengths,
            np.cumsum(lengths) if by_length else lengths,
            self._max_length,
            self._states,
            self._targets,
            self._mask_bits,
            states,
            targets,
            mask,
        )

    def state_dict(self) -> Arrays:
        """Returns the filled rows in slot order, the episodes' lengths and the number of episodes ever added."""
        lengths = self._lengths[: self.num_episodes].copy()
        rows = self._filled_rows(lengths)
        return {
            "states": self._states[rows],
            "targets": self._targets[rows],
            "mask_bits": self._mask_bits[rows],
            "lengths": lengths,
            "num_added": np.array(self.num_added, np.int64),
        }

    def load_state_dict(self, state: Arrays) -> None:
        """Restores what `state_dict` returned.

        Mutates: the store.
        """
        names = ("states", "targets", "mask_bits", "lengths", "num_added")
        missing = [name for name in names if name not in state]
        if missing:
            raise BathysphereError(f"the saved replay lacks {', '.join(missing)}; it is damaged or from elsewhere.")
        lengths = np.asarray(state["lengths"], np.int64)
        num_added = int(state["num_added"])
        is_fitting = (
            len(lengths) == min(num_added, self._capacity)
            and (not len(lengths) or 1 <= lengths.min() <= lengths.max() <= self._max_length)
            and state["states"].shape == (lengths.sum(), self.state_size)
            and state["targets"].shape == (lengths.sum(), self.num_targets)
            and state["mask_bits"].shape == (lengths.sum(), self._mask_bits.shape[1])
        )
        if not is_fitting:
            raise BathysphereError(
                f"the saved replay holds {len(lengths)} episodes with states of shape {state['states'].shape}, "
                f"which does not fit {self._capacity} episodes of up to {self._max_length} states of "
                f"{self.state_size} bytes; "
                "load it with the domain and replay settings it was saved with."
            )
        require(
            0 <= num_added < MOST and np.isfinite(state["targets"]).all(), "replay holds a target that is no number"
        )
        rows = self._filled_rows(lengths)
        self._states[rows] = state["states"]
        self._targets[rows] = state["targets"]
        self._mask_bits[rows] = state["mask_bits"]
        self._lengths[: len(lengths)] = lengths
        self.num_added = num_added

    def _filled_rows(self, lengths: NDArray[np.int64]) -> NDArray[np.int64]:
        """Returns the row numbers in use, int64 [sum of lengths], in slot order."""
        episodes = np.repeat(np.arange(len(lengths)), lengths)
        positions = np.arange(len(episodes)) - np.repeat(np.cumsum(lengths) - lengths, lengths)
        rows: NDArray[np.int64] = episodes * self._max_length + positions
        return rows
