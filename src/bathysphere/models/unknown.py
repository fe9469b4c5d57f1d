"""What an outcome that nobody knows is worth: another number to every member, and always the same ones."""

from __future__ import annotations

import numpy as np
from numba import njit
from numpy.typing import NDArray

from bathysphere.domains.base import States
from bathysphere.models.row_index import compiled

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
        return self.where(np.ones((len(states), self.num_actions), np.bool_), states)

    def where(self, is_unknown: NDArray[np.bool_], states: States) -> NDArray[np.float32]:
        """Returns float32 [n, A, E]: these numbers where `is_unknown`, bool [n, A], and 0 elsewhere."""
        values = np.zeros((*is_unknown.shape, self.num_members), np.float32)
        if is_unknown.any():
            words = np.zeros((len(states), -(-states.shape[1] // 8) * 8), np.uint8)
            words[:, : states.shape[1]] = states
            _draw(words.view(np.uint64), is_unknown, self._seed, self.spread * 3.0**0.5, values)
        return values


@njit(inline="always")
def _mixed(number):  # type: ignore[no-untyped-def]
    """Returns splitmix64's scrambling of a number."""
    z = number + _GOLDEN
    z = (z ^ (z >> _S30)) * _MIX_1
    z = (z ^ (z >> _S27)) * _MIX_2
    return z ^ (z >> _S31)


@compiled
def _draw(words, is_unknown, seed, width, values):  # type: ignore[no-untyped-def]
    """Writes numbers in [-width, width) where `is_unknown` [n, A]. Mutates: values [n, A, E]."""
    num_members = values.shape[2]
    for k in range(words.shape[0]):
        mixed = seed
        for w in range(words.shape[1]):
            mixed = _mixed(mixed ^ words[k, w])
        for a in range(values.shape[1]):
            if is_unknown[k, a]:
                for i in range(num_members):
                    column = np.uint64(a * num_members + i + 1)
                    drawn = _mixed(mixed + _GOLDEN * column)
                    values[k, a, i] = (np.float64(drawn >> _S11) * 2.0**-52 - 1.0) * width
