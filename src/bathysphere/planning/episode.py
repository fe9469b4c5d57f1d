"""What a finished episode leaves behind."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from bathysphere.planning.graph.arena import Arena


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
    num_waits: int = 0  # steps that only put off one that cannot be taken back

    def __len__(self) -> int:
        return len(self.actions)


def read_episodes(
    arena: Arena,
    slots: NDArray[np.intp],
    numbers: NDArray[np.int64],
    is_truncated: NDArray[np.bool_],
    state_size: int,
) -> list[Episode]:
    """Copies the episodes in `slots` [k], which have just finished, out of the arena.

    Args: numbers, is_truncated [k]: each one's `index` and `truncated`.
    """
    lengths = arena.episodes["step"][slots]
    history = arena.history[slots, : lengths.max()]
    is_played = np.arange(history.shape[1]) < lengths[:, None]
    where = slots[:, None], np.where(is_played, history["state"], 0)
    states = np.ascontiguousarray(arena.words[where].view(np.uint8)[..., :state_size])
    members = arena.sums[where] / arena.stats["count"][where][..., None]
    stds = members.std(axis=2).sum(axis=1, where=is_played) / lengths
    last = arena.nodes["state"][slots, arena.episodes["root"][slots]]
    solved = arena.stats["solved"][slots, last]
    counts = arena.episodes[["num_states", "num_expansions", "num_model_calls", "num_waits"]][slots].tolist()
    episodes = []
    for k, steps in enumerate(lengths.tolist()):
        num_states, num_expansions, num_model_calls, num_waits = counts[k]
        episodes.append(
            Episode(
                states=states[k, :steps],
                actions=history["action"][k, :steps],
                rewards=history["reward"][k, :steps],
                search_values=members[k, :steps],
                solved=bool(solved[k]),
                truncated=bool(is_truncated[k]),
                index=int(numbers[k]),
                num_states=num_states,
                search_std=float(stds[k]),
                num_expansions=num_expansions,
                num_model_calls=num_model_calls,
                num_waits=num_waits,
            )
        )
    return episodes
