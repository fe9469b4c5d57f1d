"""What users hand to the search, checked where it enters: kernels trust shapes, types and numbers."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from bathysphere.domains.base import States, Successors
from bathysphere.errors import BathysphereError


def checked_starts(starts: States, state_size: int) -> States:
    """Returns start states as they came, or refuses them."""
    if starts.ndim != 2 or len(starts) == 0 or starts.shape[1] != state_size or starts.dtype != np.uint8:
        raise BathysphereError(
            f"starts are {starts.dtype} of shape {starts.shape}; expected uint8 [n, {state_size}], n at least 1, "
            "such as the domain's initial or successors return."
        )
    return starts


def checked_answer(answer: Successors, num_states: int, num_actions: int, state_size: int) -> Successors:
    """Returns a model's answer with the types kernels expect, or refuses its shape."""
    expected = (num_states, num_actions, state_size)
    shapes = {part.shape for part in answer[1:]}
    if answer.states.shape != expected or shapes != {expected[:2]}:
        raise BathysphereError(
            f"successors returned states of shape {answer.states.shape} and rewards, terminal, solved of "
            f"{[part.shape for part in answer[1:]]}; expected {expected} and {expected[:2]}."
        )
    return Successors(
        np.asarray(answer.states, np.uint8),
        np.ascontiguousarray(answer.rewards, np.float64),
        np.ascontiguousarray(answer.terminal, np.bool_),
        np.ascontiguousarray(answer.solved, np.bool_),
    )


def checked_values(values: NDArray[Any], num_states: int, num_members: int) -> NDArray[np.float32]:
    """Returns a value function's answer as float32 [n, E], or refuses its shape."""
    array = np.ascontiguousarray(values, np.float32)
    if array.shape != (num_states, num_members):
        raise BathysphereError(
            f"values.evaluate returned shape {array.shape}; expected [n, E] = {(num_states, num_members)}."
        )
    return array
