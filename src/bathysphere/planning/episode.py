"""What a finished episode leaves behind."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from bathysphere.planning.graph.arena import Arena


class SeenStates(NamedTuple):
    """States that a search has seen aside from the steps made, and what it found them to be worth."""

    states: NDArray[np.uint8]  # [k, S]
    values: NDArray[np.float64]  # [k, E], by the best continuation known

    @classmethod
    def taken(
        cls,
        states: NDArray[np.uint8],
        values: NDArray[np.float64],
        is_known: NDArray[np.bool_],
        path: NDArray[np.int64],
        most: int,
    ) -> SeenStates:
        """Returns the states of a graph that are known and not on `path`.

        If there are more than `most`, they are taken at equal distances in the order of discovery.

        Args:
          states: all of the graph in that order, uint8 [N, S].
          values: of each, float64 [N, E].
          is_known: of which the search knows more than the network, bool [N].
          path: numbers of the states from which steps were made.
          most: how many to take, at most.
        """
        is_aside = is_known.copy()
        is_aside[path] = False
        known = np.flatnonzero(is_aside)
        if len(known) > most:
            known = known[np.arange(most) * len(known) // most]
        return cls(states[known], values[known])


@dataclass(frozen=True)
class Episode:
    """One played episode of T steps."""

    states: NDArray[np.uint8]  # [T, S], the state before each step
    actions: NDArray[np.int32]  # [T]
    rewards: NDArray[np.float64]  # [T], what each step earned
    # Members' values of each state when the episode ended, [T, E]; of blocks that learning needs no more of, their
    # mean, [T, 1].
    search_values: NDArray[np.float64]
    solved: bool  # the state reached last is a success
    truncated: bool  # cut off by the step limit
    index: int  # number of the episode, from 0 in order of starting
    num_states: int  # distinct states in the search graph when the episode ended
    search_std: float  # members' standard deviation, mean over the episode's states
    num_expansions: int = 0  # tree nodes that got children
    num_model_calls: int = 0  # states among them whose children the model was asked for; the graph knew the others
    num_waits: int = 0  # steps that only put off one that cannot be taken back
    policy: NDArray[np.float64] | None = None  # [T, A], the search's share of visits; see `shares_of_visits`
    graph_values: NDArray[np.float64] | None = None  # [T, E], by the best continuation known; None if not asked for
    seen: SeenStates | None = None  # further states of the search to learn from; None if not asked for
    last_state: NDArray[np.uint8] | None = None  # [S], the state reached last; None of a plan
    ended_by: str = ""  # of a search for a whole plan: its solution, or the budget that was used up

    def __len__(self) -> int:
        return len(self.actions)

    @property
    def total_reward(self) -> float:
        """The episode's return: the sum of all its rewards, not discounted."""
        return float(self.rewards.sum())


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
    last_states = np.ascontiguousarray(arena.words[slots, last]).view(np.uint8)[:, :state_size]
    policy = shares_of_visits(arena, slots, where[1])
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
                policy=policy[k, :steps],
                last_state=last_states[k],
            )
        )
    return episodes


def shares_of_visits(arena: Arena, slots: NDArray[np.intp], path: NDArray[np.int32]) -> NDArray[np.float64]:
    """Returns how searches have shared visits out among the actions at each state on their way, float64 [k, T, A].

    Visits are counted by state, from whichever parent. Those of a state in which the episode had been by then, the very
    one it was in among them, say nothing for an action that leads back there, and are left out. All shares are 0 where
    nothing is left, or was expanded.

    Args:
      arena: of the episodes.
      slots: [k], where they are.
      path: [k, T], the states in which they made their steps; after its last step, an episode's first state.
    """
    steps, rows = np.arange(path.shape[1]), np.arange(len(slots))
    first_step = np.full((len(slots), arena.episodes["num_states"][slots].max()), len(steps))
    np.minimum.at(first_step, (rows[:, None], path), steps)
    child = arena.edges["child"][slots[:, None], path]
    is_new = (child >= 0) & (first_step[rows[:, None, None], child] > steps[:, None])
    visits = np.where(is_new, arena.stats["count"][slots[:, None, None], child], 0)
    shares: NDArray[np.float64] = visits / np.maximum(visits.sum(axis=2, keepdims=True), 1)
    return shares
