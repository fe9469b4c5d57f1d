"""Domains out of tables of transitions, as Gymnasium's toy-text environments publish theirs: with chance, and small."""

from __future__ import annotations

import copy
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bathysphere.domains.adapters.calling import plain, told, user_code
from bathysphere.domains.base import Categories, DomainConfig, Outcomes, States, Successors, as_rows
from bathysphere.errors import BathysphereError

Transitions = Mapping[int, Mapping[int, Sequence[tuple[float, int, float, bool]]]]
_MOST_STATES = 65_536


class TableDomain:
    """A world whose every transition is written down. A state is its number, in two bytes.

    Args:
      transitions: for every state and action, a list of (probability, next state, reward, is it an end).
      starts: probability of every start state, [n].
      name: of the world.
      max_steps: the usual time limit.
      action_names: of the actions; their numbers if not given.
      config: what describes the world in a run's config; None if nothing does.
    """

    state_size = 2

    def __init__(
        self,
        transitions: Transitions,
        starts: Sequence[float] | NDArray[np.floating],
        *,
        name: str = "table",
        max_steps: int = 100,
        action_names: Sequence[str] | None = None,
        config: DomainConfig | None = None,
    ) -> None:
        num_states, num_actions = len(transitions), len(transitions[0])
        if num_states > _MOST_STATES or len(starts) != num_states:
            raise BathysphereError(
                f"The table has {num_states} states and {len(starts)} probabilities of starting there; expected as "
                f"many of both, and at most {_MOST_STATES:,}."
            )
        self.name, self.max_steps, self.config = name, max_steps, config
        self.action_names = tuple(action_names or map(str, range(num_actions)))
        self.observation = Categories((1,), num_states)
        self._starts = np.asarray(starts, np.float64) / np.sum(starts)
        most = max(len(listed) for row in transitions.values() for listed in row.values())
        shape = (num_states, num_actions, most)
        # Where there are fewer outcomes than the most, the state stays where it is, with probability 0.
        self._after = np.broadcast_to(np.arange(num_states)[:, None, None], shape).astype(np.int64)
        self._chances, self._rewards, self._ends = np.zeros(shape), np.zeros(shape), np.zeros(shape, np.bool_)
        for state, row in transitions.items():
            for action, listed in row.items():
                for c, (probability, after, reward, is_end) in enumerate(listed):
                    place = state, action, c
                    self._chances[place], self._after[place] = probability, after
                    self._rewards[place], self._ends[place] = reward, is_end
        if not np.allclose(self._chances.sum(axis=2), 1.0):
            raise BathysphereError("The probabilities of the outcomes of an action do not add up to 1.")

    @classmethod
    def of_gymnasium(cls, env: Any, config: DomainConfig | None = None) -> TableDomain:
        """Returns the world of an environment that publishes its transitions as `env.unwrapped.P`."""
        inner, limit = env.unwrapped, getattr(env.spec, "max_episode_steps", None)
        name = getattr(env.spec, "id", type(inner).__name__)
        world = cls(inner.P, inner.initial_state_distrib, name=name, max_steps=limit or 100, config=config)
        begun = copy.deepcopy(inner)
        begun.reset()
        draws = {"ansi", "rgb_array"} <= {*getattr(inner, "metadata", {}).get("render_modes", ())}
        return _Drawn(world, begun) if draws and hasattr(begun, "s") else world

    def __repr__(self) -> str:
        return told(self)

    def initial(self, n: int, rng: np.random.Generator) -> States:
        """Draws `n` start states."""
        return _rows(rng.choice(len(self._starts), size=n, p=self._starts))

    def outcomes(self, states: States) -> Outcomes:
        """Returns all that may follow."""
        now = self._numbers(states)
        rewards, ends = self._rewards[now], self._ends[now]
        return Outcomes(_rows(self._after[now]), self._chances[now], rewards, ends, ends & (rewards > 0.0))

    def successors(self, states: States) -> Successors:
        """Returns the likeliest outcome of every action; of several, the one listed first."""
        now = self._numbers(states)
        first = self._chances[now].argmax(axis=2)
        likeliest = now[:, None], np.arange(len(self.action_names)), first
        rewards, ends = self._rewards[likeliest], self._ends[likeliest]
        return Successors(_rows(self._after[likeliest]), rewards, ends, ends & (rewards > 0.0))

    def observe(self, states: States) -> NDArray[np.int32]:
        """Returns the number of each state, int32 [n, 1]; one that no state has, of a state that a model makes up."""
        return _read(states).astype(np.int32)[:, None]

    def text(self, state: States) -> str:
        """Names the state."""
        return f"{self.name}: state {self._numbers(state[None])[0]}"

    def _numbers(self, states: States) -> NDArray[np.int64]:
        numbers = _read(states)
        if (most := numbers.max(initial=0)) >= len(self._after):
            raise BathysphereError(
                f"{self.name} has the states 0 to {len(self._after) - 1}, and {most} came. Pass rows that came from "
                "initial, successors or outcomes; if they came from a file, it is damaged or was made up."
            )
        return numbers


class _Drawn(TableDomain):
    """A table with the environment that it is of, which draws; the number of its state is its `s`."""

    def __init__(self, world: TableDomain, env: Any) -> None:
        self.__dict__.update(world.__dict__)
        self._env = env

    def render(self, state: States) -> NDArray[np.uint8]:
        """Draws a state, uint8 [S]."""
        return np.asarray(self._drawn(state, "rgb_array"), np.uint8)

    def text(self, state: States) -> str:
        """Writes a state, uint8 [S]."""
        return plain(self._drawn(state, "ansi"))

    def _drawn(self, state: States, mode: str) -> Any:
        env = copy.deepcopy(self._env)  # windows and the like could not be copied afterwards
        env.s, env.lastaction, env.render_mode = int(self._numbers(state[None])[0]), None, mode
        with user_code("render"):
            return env.render()


def has_chance(env: Any) -> bool:
    """Tells whether an environment publishes its transitions, and some action has more than one outcome."""
    table = getattr(env.unwrapped, "P", None)
    if not isinstance(table, Mapping) or not hasattr(env.unwrapped, "initial_state_distrib"):
        return False
    return any(len(listed) > 1 for row in table.values() for listed in row.values())


def _rows(numbers: NDArray[np.int64]) -> States:
    """Returns numbers [...] as states, uint8 [..., 2]."""
    return np.ascontiguousarray(numbers.astype("<u2"))[..., None].view(np.uint8)


def _read(states: States) -> NDArray[np.int64]:
    """Returns the numbers [n] that states, uint8 [n, 2], hold."""
    return as_rows(states, TableDomain.state_size).view("<u2")[:, 0].astype(np.int64)
