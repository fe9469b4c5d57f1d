"""What a finished episode leaves behind."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True)
class Episode:
    """One played episode of T steps. The state reached last is not stored."""

    states: NDArray[np.uint8]  # [T, S], the state before each step
    actions: NDArray[np.int32]  # [T]
    rewards: NDArray[np.float64]  # [T], what each step earned
    search_values: NDArray[np.float64]  # [T, E], members' values of each state when the episode ended
    solved: bool  # the state reached last is a success
    truncated: bool  # cut off by the step limit
    index: int  # number of the episode, from 0 in order of starting
    num_states: int  # distinct states in the search graph when the episode ended
    search_std: float  # members' standard deviation, mean over the episode's states
    num_expansions: int = 0  # tree nodes that got children
    num_model_calls: int = 0  # states among them whose children the model was asked for; the graph knew the others

    def __len__(self) -> int:
        return len(self.actions)
