"""A small world with chance, value iteration in it, and the plain twin of planning by expectations."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from bathysphere.domains.base import Categories, Outcomes, Successors
from tests.oracles.planner import SEPARABLE, SplitMix, votes


@dataclass
class RandomMDP:
    """States are numbers in three bytes, far apart."""

    target: np.ndarray  # [states, actions, outcomes]
    chance: np.ndarray  # the same shape; some are 0
    reward: np.ndarray  # the same shape
    is_end: np.ndarray  # [states]
    max_steps: int = 15
    name: str = "random-mdp"
    state_size: int = 3

    @classmethod
    def draw(cls, rng):
        states, actions, outcomes = int(rng.integers(2, 12)), int(rng.integers(1, 4)), int(rng.integers(1, 4))
        shape = (states, actions, outcomes)
        chance = rng.random(shape) * (rng.random(shape) < 0.8)
        chance[..., 0] += 1e-3
        chance /= chance.sum(axis=2, keepdims=True)
        # Exact in float32, so that the twin may compute with the same numbers.
        chance = chance.astype(np.float32).astype(float)
        is_end = rng.random(states) < 0.2
        is_end[0] = False
        target, reward = rng.integers(states, size=shape), rng.normal(size=shape).round(2)
        target[is_end], reward[is_end] = np.flatnonzero(is_end)[:, None, None], 0.0
        return cls(target, chance, reward, is_end)

    @property
    def action_names(self):
        return tuple(f"a{i}" for i in range(self.target.shape[1]))

    @property
    def observation(self):
        return Categories((1,), len(self.target))

    def encode(self, numbers):
        states = np.zeros((*numbers.shape, 3), np.uint8)
        states[..., 1], states[..., 2] = numbers, 7
        return states

    def number(self, states):
        return states[..., 1].astype(np.int64)

    def initial(self, n, rng):
        return self.encode(np.zeros(n, np.int64))

    def outcomes(self, states):
        now = self.number(states)
        after = self.target[now]
        ends = self.is_end[after]
        return Outcomes(self.encode(after), self.chance[now], self.reward[now], ends, np.zeros_like(ends))

    def successors(self, states):
        answer, rows = self.outcomes(states), np.arange(len(states))[:, None]
        chosen = rows, np.arange(self.target.shape[1])[None], answer.probabilities.argmax(axis=2)
        return Successors(answer.states[chosen], answer.rewards[chosen], answer.terminal[chosen], answer.solved[chosen])

    def observe(self, states):
        return self.number(states).astype(np.int32)[:, None]


def optimal(mdp, discount, sweeps=2000):
    """Value iteration: the best expected discounted return of every state and action, [states], [states, actions]."""
    value = np.zeros(len(mdp.target))
    for _ in range(sweeps):
        ahead = np.where(mdp.is_end, 0.0, value)[mdp.target]
        q = (mdp.chance * (mdp.reward + discount * ahead)).sum(axis=2)
        value = q.max(axis=1)
    return value, q


class OracleSearch:
    """Plans one step from a state, with dicts and loops.

    Args:
      start: number of the state.
      values: [states, E], what the value function says.
      members: that rank actions.
      seed: of the episode's random stream.
    """

    def __init__(self, mdp, start, values, config, members, seed):
        self.mdp, self.root, self.config, self.members = mdp, start, config, members
        self.value = {start: [float(v) for v in values[start]]}  # of every state seen, by member
        self.initial, self.expanded, self.rng = values, set(), SplitMix(seed)

    def expectations(self, state):
        q, luck = [], []
        num_members = self.initial.shape[1]
        for a in range(self.mdp.target.shape[1]):
            edges = list(
                zip(self.mdp.chance[state, a], self.mdp.reward[state, a], self.mdp.target[state, a], strict=True)
            )
            worth = [
                [r + self.config.discount * self.value[int(s)][e] for _, r, s in edges] for e in range(num_members)
            ]
            mean = [sum(p * w for (p, _, _), w in zip(edges, row, strict=True)) for row in worth]
            square = [
                sum(p * (w - m) ** 2 for (p, _, _), w in zip(edges, row, strict=True))
                for row, m in zip(worth, mean, strict=True)
            ]
            q.append(mean)
            luck.append(math.sqrt(sum(square) / num_members))
        return q, luck

    def scores(self, state):
        q, luck = self.expectations(state)
        rows = {a: [row[i] for i in self.members] for a, row in enumerate(q)}
        risk = self.config.risk
        if risk in SEPARABLE:
            found = {a: SEPARABLE[risk](row, self.config.risk_coef) for a, row in rows.items()}
        else:
            found = votes(rows, list(rows), risk == "vote")
        return {a: score + self.config.aleatoric * luck[a] for a, score in found.items()}

    def choose(self, state):
        scores = self.scores(state)
        top = max(scores.values())
        ties = [a for a, score in scores.items() if score == top]
        return ties[self.rng.below(len(ties))] if len(ties) > 1 else ties[0]

    def one_pass(self):
        state, path = self.root, []
        while not self.mdp.is_end[state] and len(path) < self.config.max_depth:
            path.append(state)
            if state not in self.expanded:
                self.expanded.add(state)
                for after in self.mdp.target[state].ravel().tolist():
                    worth = [0.0] * self.initial.shape[1] if self.mdp.is_end[after] else self.initial[after]
                    self.value.setdefault(after, [float(v) for v in worth])
                break
            action = self.choose(state)
            left = self.rng.below(2**53) / 2**53
            for chance, after in zip(self.mdp.chance[state, action], self.mdp.target[state, action], strict=True):
                if chance > 0:
                    next_state = int(after)
                    left -= chance
                    if left < 0:
                        break
            state = next_state
        for state in reversed(path):
            q, _ = self.expectations(state)
            self.value[state] = [max(row[e] for row in q) for e in range(self.initial.shape[1])]
