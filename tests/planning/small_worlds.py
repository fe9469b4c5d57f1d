"""Tiny worlds drawn by hand, for tests whose numbers are computed on paper."""

from __future__ import annotations

import numpy as np

from bathysphere.planning import MCTS, SearchConfig
from tests.oracles.random_graph import RandomGraph, TableValues


def make_domain(edges: dict[int, list], *, ends=(), solved=(), max_steps=12) -> RandomGraph:
    """Builds a world from state -> list over actions of target or (target, reward). Other states loop."""
    num_states = 1 + max([*edges, *ends, *(t[0] if isinstance(t, tuple) else t for row in edges.values() for t in row)])
    num_actions = len(next(iter(edges.values())))
    target = np.repeat(np.arange(num_states)[:, None], num_actions, axis=1)
    reward = np.zeros(target.shape)
    for state, row in edges.items():
        for action, edge in enumerate(row):
            target[state, action], reward[state, action] = edge if isinstance(edge, tuple) else (edge, 0.0)
    is_end, is_solved = np.zeros(num_states, bool), np.zeros(num_states, bool)
    is_end[list(ends)] = True
    is_solved[list(solved)] = True
    return RandomGraph(target, reward, is_end, is_solved, max_steps)


class Recorder(RandomGraph):
    """A world that notes which states it was asked about, in order."""

    @classmethod
    def of(cls, graph: RandomGraph) -> Recorder:
        recorder = cls(graph.target, graph.reward, graph.is_end, graph.is_solved, graph.max_steps)
        recorder.expanded = []
        return recorder

    def successors(self, states):
        self.expanded += self.number(states).tolist()
        return super().successors(states)


def make_search(domain: RandomGraph, values, batch=1, seed=0, **options) -> MCTS:
    """Returns a planner with `values` [states] or [states, E] as its value function."""
    table = np.asarray(values, np.float32)
    table = table[:, None] if table.ndim == 1 else table
    num_episodes = options.pop("num_episodes", None)
    model = options.pop("model", None)
    config = SearchConfig(**options)
    return MCTS(domain, TableValues(table), config, batch=batch, seed=seed, num_episodes=num_episodes, model=model)


def plan(search: MCTS) -> None:
    """Makes all passes of one step, without taking it."""
    search.plan()


def entry(search: MCTS, domain: RandomGraph, state: int, slot: int = 0) -> int:
    """Returns where the world's state `state` lies in the arena."""
    wanted = domain.encode(np.array(state)).tobytes()
    for k in range(int(search.arena.episodes["num_states"][slot])):
        if search.arena.words[slot, k].tobytes()[: domain.state_size] == wanted:
            return k
    raise AssertionError(f"state {state} is not in the search graph")


def count(search: MCTS, domain: RandomGraph, state: int) -> int:
    """Returns n of a state."""
    return int(search.arena.stats["count"][0, entry(search, domain, state)])


def total(search: MCTS, domain: RandomGraph, state: int) -> list[float]:
    """Returns the member sums of a state."""
    return search.arena.sums[0, entry(search, domain, state)].tolist()
