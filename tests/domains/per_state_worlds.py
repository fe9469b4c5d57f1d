"""Worlds that are written one state at a time, each in a few lines."""

import typing

import numpy as np


class Stairs:
    """Seven stairs; the top is the goal. The state is the stair, and a down from the ground is impossible."""

    actions = ("down", "up")
    max_steps = 20

    def start(self, rng):
        return int(rng.integers(1, 4))

    def step(self, state, action):
        after = max(0, state - 1) if action == "down" else state + 1
        return after, float(after == 6), after == 6


class Lamps:
    """Lights Out on a ring of six: a press switches a lamp and its neighbours, and dark is the goal."""

    actions = 6
    goal_reward = 1

    def start(self, rng):
        state = (0,) * 6
        while not any(state):
            for action in np.flatnonzero(rng.random(6) < 0.5):
                state = self._pressed(state, int(action))
        return state

    def step(self, state, action):
        after = self._pressed(state, action)
        return after, float(not any(after)), not any(after)

    def _pressed(self, state, action):
        return tuple(lamp ^ ((number - action) % 6 in (0, 1, 5)) for number, lamp in enumerate(state))

    def text(self, state):
        return "".join(".#"[lamp] for lamp in state)

    def render(self, state):
        return np.array(state, np.uint8).reshape(1, 6, 1).repeat(3, axis=2) * 255

    def transform(self, state, rng):
        turn = int(rng.integers(6))
        return state[turn:] + state[:turn], [(action + turn) % 6 for action in range(6)]

    def relabel(self, states, rng):
        return states[:2], [0.0, 1.0]


class Place(typing.NamedTuple):
    """Where the walker is and what it carries."""

    row: int
    column: int
    keys: frozenset


class Keys:
    """A walk in a 3 x 3 field: fetch the key in one corner, leave by another, and never fall off the third."""

    actions = ((0, 1), (1, 0), (0, -1), (-1, 0))
    max_steps = 30

    def start(self, rng):
        return Place(1, 1, frozenset())

    def legal(self, state):
        return [(y, x) for y, x in self.actions if 0 <= state.row + y < 3 and 0 <= state.column + x < 3]

    def step(self, state, action):
        row, column = state.row + action[0], state.column + action[1]
        keys = state.keys | {"gold"} if (row, column) == (0, 2) else state.keys
        fell, out = (row, column) == (2, 0), (row, column) == (2, 2) and "gold" in keys
        return Place(row, column, keys), -0.1, fell or out, out

    def observe(self, state):
        return [state.row, state.column, len(state.keys)]


class Drops:
    """A field of numbers: each action empties a column; empty is the goal. States are arrays."""

    actions = ("first", "second")

    def start(self, rng):
        return rng.integers(1, 5, size=(2, 2)).astype(np.int8)

    def step(self, state, action):
        after = state.copy()
        after[:, self.actions.index(action)] = 0
        done = not after.any()
        return after, 2.0 * done, done
