"""What an outcome that nobody knows is worth: another number to every member, and always the same ones."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from bathysphere.domains.base import States

_GOLDEN, _MIX_1, _MIX_2 = (np.uint64(n) for n in (0x9E3779B97F4A7C15, 0xBF58476D1CE4E5B9, 0x94D049BB133111EB))
_S27, _S30, _S31, _S11 = (np.uint64(n) for n in (27, 30, 31, 11))


class UnknownValues:
    """Numbers drawn once and for all for every state, action and member: uniform, with mean 0.

    Args:
      num_actions: A.
      num_members: E.
      spread: their standard deviation. That of the ensemble before training makes what is unknown look to a risk
        measure as a state does that nobody has learnt about.
      seed: decides them.
    """

    def __init__(self, num_actions: int, num_members: int, spread: float, seed: int) -> None:
        self.num_actions, self.num_members, self.spread, self._seed = num_actions, num_members, spread, np.uint64(seed)

    def of(self, states: States) -> NDArray[np.float32]:
        """Returns float32 [n, A, E]: splitmix64 of the state's bytes, the action and the member, as numbers."""
        num_states = len(states)
        words = np.zeros((num_states, -(-states.shape[1] // 8) * 8), np.uint8)
        words[:, : states.shape[1]] = states
        mixed = np.full(num_states, self._seed)
        for word in np.ascontiguousarray(words.view(np.uint64).T):
            mixed = _mixed(mixed ^ word)
        columns = np.arange(self.num_actions * self.num_members, dtype=np.uint64)
        drawn = _mixed(mixed[:, None] + _GOLDEN * (columns + np.uint64(1)))
        uniform = (drawn >> _S11).astype(np.float64) * 2.0**-52 - 1.0
        values: NDArray[np.float32] = (uniform * (self.spread * 3.0**0.5)).astype(np.float32)
        return values.reshape(num_states, self.num_actions, self.num_members)

    def where(self, is_unknown: NDArray[np.bool_], states: States) -> NDArray[np.float32]:
        """Returns float32 [n, A, E]: these numbers where `is_unknown`, bool [n, A], and 0 elsewhere."""
        values = np.zeros((*is_unknown.shape, self.num_members), np.float32)
        if is_unknown.any():
            values[is_unknown] = self.of(states)[is_unknown]
        return values


def _mixed(numbers: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """Returns splitmix64's scrambling of `numbers`."""
    z = numbers + _GOLDEN
    z = (z ^ (z >> _S30)) * _MIX_1
    z = (z ^ (z >> _S27)) * _MIX_2
    mixed: NDArray[np.uint64] = z ^ (z >> _S31)
    return mixed
