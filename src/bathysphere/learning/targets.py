"""What the value of each state of a finished episode should have been."""

from __future__ import annotations

from typing import Literal

import numpy as np
from numpy.typing import NDArray

from bathysphere.planning import Episode

TargetKind = Literal[
    "bootstrap",
    "bootstrap_members",
    "bootstrap_best",
    "mixed",
    "graph",
    "lookahead",
    "factual",
    "factual_discount",
    "factual_rewards",
]


def discounted_returns(rewards: NDArray[np.float64], discount: float) -> NDArray[np.float64]:
    """Returns v[t] = rewards[t] + discount * v[t + 1], with v[T] = 0. Float64 [T].

    >>> discounted_returns(np.array([0.0, 1.0, 4.0]), 0.5).tolist()
    [1.5, 3.0, 4.0]
    """
    returns = np.empty(len(rewards))
    value = 0.0
    for t in range(len(rewards) - 1, -1, -1):
        value = rewards[t] + discount * value
        returns[t] = value
    return returns


def targets(episode: Episode, kind: TargetKind, discount: float) -> NDArray[np.float64]:
    """Returns the target of every state of `episode`, float64 [T, M]: M is 1, or E for `bootstrap_members`.

    Args:
      episode: a finished episode.
      kind: bootstrap: the planner's own value of the state at the end of the episode, mean over members, so the
        same for all of them. bootstrap_members: the same for each member by itself, so that what members
        disagree on ahead makes them disagree here. graph: what the best continuation known to the search's graph
        is worth, mean over members (see `best_known_values`). lookahead: as bootstrap, until a batch is drawn (see
        `look_ahead`). factual: 1 if the episode was solved, else 0.
        factual_discount: the same, discounted by the number of steps left after this one. factual_rewards:
        the discounted sum of the rewards that followed. In the factual kinds the last state gets the final
        reward undiscounted, as in the authors' code; the paper's recursion gives it 0.
      discount: of factual_discount and factual_rewards.
    """
    if kind == "graph":
        assert episode.graph_values is not None  # the trainer asks planners for them
        known: NDArray[np.float64] = episode.graph_values.mean(axis=1, keepdims=True)
        return known
    if kind == "bootstrap_members":
        return episode.search_values
    searched = episode.search_values
    if searched.shape[1] > 1:
        searched = searched.mean(axis=1, keepdims=True)
    if kind in ("bootstrap", "lookahead"):
        return searched
    returned = discounted_returns(episode.rewards, discount)[:, None]
    if kind == "factual_rewards":
        return returned
    if kind == "mixed":
        return (searched + returned) / 2
    if kind == "bootstrap_best":
        return np.maximum(searched, returned) if episode.solved else searched
    outcome = np.zeros(len(episode))
    outcome[-1:] = float(episode.solved)
    return discounted_returns(outcome, 1.0 if kind == "factual" else discount)[:, None]


def policy_targets(episode: Episode, has_reached: bool, num_actions: int) -> NDArray[np.float64]:
    """Returns what a policy should have said at every state of `episode`, float64 [T, A].

    That is the action taken if the episode reached a goal, its own or a new one, otherwise the search's share of
    visits; all 0 if there is nothing to learn.
    """
    if has_reached:
        return np.eye(num_actions)[episode.actions]
    return np.zeros((len(episode), num_actions)) if episode.policy is None else episode.policy


def num_targets(kind: TargetKind, num_members: int) -> int:
    """Returns M, the number of targets a state has."""
    return num_members if kind == "bootstrap_members" else 1
