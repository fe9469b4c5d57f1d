"""Hindsight for Sokoban: where the boxes ended up becomes where they should have gone."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from bathysphere.domains.base import States
from bathysphere.domains.sokoban.rules import (
    BOX,
    BOX_ON_TARGET,
    FLOOR,
    PLAYER,
    PLAYER_ON_TARGET,
    TARGET,
    Rewards,
    is_solved,
)

# Cell codes with their target taken away or put under; walls have none.
_WITHOUT_TARGET = np.arange(256, dtype=np.uint8)
_WITHOUT_TARGET[[TARGET, BOX_ON_TARGET, PLAYER_ON_TARGET]] = FLOOR, BOX, PLAYER
_WITH_TARGET = np.arange(256, dtype=np.uint8)
_WITH_TARGET[[FLOOR, BOX, PLAYER]] = TARGET, BOX_ON_TARGET, PLAYER_ON_TARGET


def relabel(
    states: States, rng: np.random.Generator, rewards: Rewards | None = None
) -> tuple[States, NDArray[np.float64]]:
    """Pretends that an unsolved episode pursued the box positions it reached.

    The episode is cut after m states, m uniform on {2, ..., T}. The boxes of the m-th state become the
    targets of all of them. Play then ends at the first state with all boxes on the new targets; that
    state is dropped, and each remaining one gets the reward of the move to its successor, so the last one
    gets the final reward. If the first state is already solved (no box moved up to m), the cut episode is
    returned with its old targets.

    Args:
      states: the positions of one unsolved episode, uint8 [T, S]. Not changed.
      rng: draws m; not used if T < 2.
      rewards: what moves pay.

    Returns:
      (states uint8 [T', S], rewards float64 [T']), 1 <= T' <= T if T >= 1. In an episode that keeps its old
      targets, the move out of the last state is read from `states`, or if it is not there, pays a step.
    """
    rewards = rewards or Rewards()
    length = len(states)
    if length < 2:
        return states.copy(), np.full(length, rewards.step, np.float64)
    cut = int(rng.integers(2, length + 1))
    last = states[cut - 1]
    targets = (last == BOX) | (last == BOX_ON_TARGET)
    plain = _WITHOUT_TARGET[states[:cut]]
    relabelled = np.where(targets, _WITH_TARGET[plain], plain)
    end = int(np.argmax(is_solved(relabelled)))  # the last state is solved by construction
    if end == 0:
        paid = np.full(cut, rewards.step, np.float64)
        paid[: min(cut, length - 1)] = _edge_rewards(states[: cut + 1], rewards)
        return states[:cut].copy(), paid
    return relabelled[:end], _edge_rewards(relabelled[: end + 1], rewards)


def _edge_rewards(states: States, rewards: Rewards) -> NDArray[np.float64]:
    """Returns the reward of the move from each state but the last to the next one, float64 [T - 1]."""
    off_target = (states == BOX).sum(axis=1)
    change = np.diff(off_target)  # a move pushes at most one box: -1, 0 or 1
    paid = np.full(len(change), rewards.step, np.float64)
    paid[change < 0] += rewards.box_on_target
    paid[change > 0] += rewards.box_off_target
    paid[(off_target[1:] == 0) & (off_target[:-1] > 0)] += rewards.finished
    return paid
