"""A domain drawn at random: cycles, self-loops, dead ends, ends and transpositions, all on purpose."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from bathysphere.domains.base import Features, Successors


@dataclass
class RandomGraph:
    """States are numbers written into 11 bytes (not a whole number of words, so padding is exercised)."""

    target: NDArray[np.int64]  # [states, actions]
    reward: NDArray[np.float64]  # [states, actions]
    is_end: NDArray[np.bool_]  # [states]
    is_solved: NDArray[np.bool_]  # [states]
    max_steps: int = 12
    name: str = "random-graph"
    state_size: int = 11
    observation: Features = field(default_factory=lambda: Features(1))

    @property
    def action_names(self) -> tuple[str, ...]:
        return tuple(f"a{i}" for i in range(self.target.shape[1]))

    @classmethod
    def draw(cls, rng: np.random.Generator, *, acyclic: bool = False) -> RandomGraph:
        """Draws 2 to 40 states with 1 to 4 actions."""
        num_states, num_actions = int(rng.integers(2, 41)), int(rng.integers(1, 5))
        is_end = rng.random(num_states) < rng.choice([0.0, 0.1, 0.3])
        is_end[0] = False
        if acyclic:
            is_end[-1] = True
            low = np.arange(num_states)[:, None] + 1
            target = rng.integers(np.minimum(low, num_states - 1), num_states, size=(num_states, num_actions))
        else:
            target = rng.integers(0, num_states, size=(num_states, num_actions))
            loops = rng.random(target.shape) < 0.15
            target = np.where(loops, np.arange(num_states)[:, None], target)
        reward = np.where(rng.random(target.shape) < 0.3, rng.normal(size=target.shape), 0.0)
        target[is_end] = np.flatnonzero(is_end)[:, None]
        reward[is_end] = 0.0
        return cls(target, reward, is_end, is_end & (rng.random(num_states) < 0.5))

    def misled(self, rng: np.random.Generator, rate: float) -> RandomGraph:
        """Returns a model of this world that errs: wrong states, wrong rewards, false and missed ends."""
        wrong = rng.random(self.target.shape) < rate
        target = np.where(wrong, rng.integers(0, len(self.target), self.target.shape), self.target)
        reward = np.where(rng.random(target.shape) < rate, 5.0, self.reward)
        is_end = self.is_end ^ (rng.random(len(self.is_end)) < rate)
        return RandomGraph(target, reward, is_end, is_end & self.is_solved, self.max_steps)

    def encode(self, numbers: NDArray[np.int64]) -> NDArray[np.uint8]:
        states = np.zeros((*numbers.shape, self.state_size), np.uint8)
        states[..., 0] = numbers
        states[..., 10] = 255 - numbers
        return states

    def number(self, states: NDArray[np.uint8]) -> NDArray[np.int64]:
        return states[..., 0].astype(np.int64)

    def initial(self, n: int, rng: np.random.Generator) -> NDArray[np.uint8]:
        return self.encode(np.zeros(n, np.int64))

    def successors(self, states: NDArray[np.uint8]) -> Successors:
        number = self.number(states)
        target = self.target[number]
        return Successors(self.encode(target), self.reward[number], self.is_end[target], self.is_solved[target])

    def observe(self, states: NDArray[np.uint8]) -> NDArray[np.float32]:
        return self.number(states).astype(np.float32)[:, None]

    def render(self, state: NDArray[np.uint8]) -> NDArray[np.uint8]:
        return np.full((8, 8, 3), state[0], np.uint8)

    def text(self, state: NDArray[np.uint8]) -> str:
        return f"state {state[0]}"


class TableValues:
    """A value function that looks its answers up: float32 [states, E]."""

    def __init__(self, table: NDArray[np.float32]) -> None:
        self.table = table
        self.num_members = table.shape[1]

    def evaluate(self, observations: NDArray[np.float32]) -> NDArray[np.float32]:
        return self.table[observations[:, 0].astype(np.int64)]


class HashedValues:
    """A value function for any domain: pseudo-random numbers fixed by the observation, whatever its batch."""

    def __init__(self, num_members: int, seed: int = 0) -> None:
        self.num_members = num_members
        self._seed = seed

    def evaluate(self, observations: NDArray[np.generic]) -> NDArray[np.float32]:
        flat = observations.reshape(len(observations), -1).astype(np.int64)
        keys = (flat * np.arange(1, 2 * flat.shape[1], 2)).sum(axis=1) + self._seed
        members = np.arange(1, self.num_members + 1)
        return ((keys[:, None] * 2654435761 * members % 1000003) / 1000003 - 0.5).astype(np.float32)
