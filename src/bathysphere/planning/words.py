"""States as rows of 64-bit words, as kernels compare and store them."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from bathysphere.domains.base import States


class WordRows:
    """Turns states into rows of words and back.

    Args:
      state_size: S, bytes of a state.
      shape: the largest shape of arrays of three axes that `words` is given, without the last axis.
    """

    def __init__(self, state_size: int, shape: tuple[int, int]) -> None:
        self._state_size = state_size
        self._num_words = -(-state_size // 8)
        self._padded = np.zeros((*shape, self._num_words * 8), np.uint8)

    def states(self, words: NDArray[np.uint64]) -> States:
        """Returns the states in rows of words, uint8 [..., S], contiguous."""
        return np.ascontiguousarray(words.view(np.uint8)[..., : self._state_size])

    def words(self, states: States) -> NDArray[np.uint64]:
        """Returns rows of words, uint64 [..., W], holding the states; valid until the next call."""
        if self._state_size % 8 == 0 and states.flags.c_contiguous:
            return states.view(np.uint64)
        if states.ndim == 2:
            padded = np.zeros((len(states), self._num_words * 8), np.uint8)
        else:
            padded = self._padded[: len(states)]
        padded[..., : self._state_size] = states
        return padded.view(np.uint64)
