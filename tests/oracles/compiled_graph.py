"""A random graph that also offers its rules to compiled code, and is observed as one category."""

from __future__ import annotations

import dataclasses

import numpy as np
from numpy.typing import NDArray

from bathysphere.domains.base import Categories, CompiledRules
from tests.oracles.random_graph import RandomGraph


class CompiledGraph(RandomGraph):
    """The same world for the planner's in-place route."""

    @classmethod
    def of(cls, graph: RandomGraph, state_size: int = 11) -> CompiledGraph:
        """Returns `graph` with compiled rules."""
        parts = {part.name: getattr(graph, part.name) for part in dataclasses.fields(graph)}
        observation = Categories((1,), len(graph.target))
        return cls(**{**parts, "state_size": state_size, "observation": observation})

    def observe(self, states: NDArray[np.uint8]) -> NDArray[np.int32]:
        return self.number(states).astype(np.int32)[:, None]

    def compiled_rules(self) -> CompiledRules:
        cells = np.concatenate([self.is_end, self.is_solved, self.target.ravel()]).astype(np.uint8)
        return CompiledRules(step, number, self.reward.ravel(), cells)


def step(numbers, cells, state, states, rewards, terminal, solved):
    """`cells` holds per state whether it is an end, whether it is a success, and its targets."""
    num_actions = states.shape[0]
    num_states = cells.size // (2 + num_actions)
    for action in range(num_actions):
        edge = np.int64(state[0]) * num_actions + action
        target = cells[2 * num_states + edge]
        for i in range(states.shape[1]):
            states[action, i] = 0
        states[action, 0] = target
        states[action, 10] = 255 - target
        rewards[action] = numbers[edge]
        terminal[action] = cells[target] != 0
        solved[action] = cells[num_states + np.int64(target)] != 0


def number(numbers, cells, state):
    return np.int64(state[0])
