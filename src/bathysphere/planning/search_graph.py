"""One episode's search graph as plain arrays, whichever planner made it."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bathysphere.domains.base import States
from bathysphere.planning.graph.arena import NO_CHILD
from bathysphere.planning.graph.graphs import Graphs


@dataclass(frozen=True)
class SearchGraph:
    """One episode's search graph: N states in order of discovery, so state 0 is where the episode began."""

    states: States  # uint8 [N, S]
    count: NDArray[np.int64]  # [N], values in the means
    member_values: NDArray[np.float64]  # [N, E], every member's mean
    mean: NDArray[np.float64]  # [N], over members
    std: NDArray[np.float64]  # [N], over members (population)
    child: NDArray[np.int64]  # [N, A], the state each action leads to; -1 if not expanded
    reward: NDArray[np.float64]  # [N, A]; 0 if not expanded
    terminal: NDArray[np.bool_]  # [N]
    solved: NDArray[np.bool_]  # [N]
    root_visits: NDArray[np.int64]  # [N], steps that started there
    root: int  # the state the episode is in
    depth: NDArray[np.int64]  # [N], fewest actions from the root along known edges; -1 if it cannot be reached
    chances: NDArray[np.float64] | None = None  # [N, A, C], of every outcome; then child and reward are [N, A * C]
    unknown: NDArray[np.bool_] | None = None  # [N], outcomes that the model does not know; None if it knows all

    @cached_property
    def likely_child(self) -> NDArray[np.int64]:
        """The state each action most probably leads to, of equally probable ones the best: int64 [N, A]."""
        return self._likely(self.child)

    @cached_property
    def likely_reward(self) -> NDArray[np.float64]:
        """The reward on the way there, float64 [N, A]."""
        return self._likely(self.reward)

    def _likely(self, edges: NDArray[Any]) -> NDArray[Any]:
        if self.chances is None:
            return edges
        shape = self.chances.shape
        worth = (self.reward + self.mean[self.child]).reshape(shape)
        is_likely = self.chances >= self.chances.max(axis=2, keepdims=True) - 1e-9
        outcome = np.where(is_likely, worth, -np.inf).argmax(axis=2)
        return np.take_along_axis(edges.reshape(shape), outcome[:, :, None], axis=2)[:, :, 0]


def graph_of_episode(graphs: Graphs, slot: int) -> SearchGraph:
    """Copies the search graph of the episode in `slot` out of the arena."""
    arena = graphs.arena
    root = int(arena.nodes["state"][slot, arena.episodes["root"][slot]])
    used = slice(int(arena.episodes["num_states"][slot]))
    stats, edges = arena.stats[slot, used], arena.edges[slot, used]
    child = edges["child"].astype(np.int64)
    members = arena.sums[slot, used].astype(np.float64) / stats["count"][:, None]
    return SearchGraph(
        states=graphs.states(np.ascontiguousarray(arena.words[slot, used])).copy(),
        count=stats["count"].astype(np.int64),
        member_values=members,
        mean=members.mean(axis=1),
        std=members.std(axis=1),
        child=child,
        reward=np.where(child == NO_CHILD, 0.0, edges["reward"]),
        terminal=stats["terminal"].copy(),
        solved=stats["solved"].copy(),
        root_visits=stats["root_visits"].astype(np.int64),
        root=root,
        depth=depths_from(child, root),
        unknown=stats["unknown"].copy(),
    )


def depths_from(child: NDArray[np.int64], root: int) -> NDArray[np.int64]:
    """Returns the distance of every state from `root`, breadth first; -1 where there is no way."""
    depth = np.full(len(child), -1, np.int64)
    frontier, distance = np.array([root]), 0
    while len(frontier):
        depth[frontier] = distance
        reached = np.unique(child[frontier])
        frontier = reached[(reached != NO_CHILD) & (depth[reached] < 0)]
        distance += 1
    return depth
