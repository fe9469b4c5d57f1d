"""Worlds that are broken on purpose, each in one way. Most are a walk on a ring of cells with one thing wrong."""

import itertools
import random
import time

import numpy as np

from bathysphere.domains.base import Categories
from tests.domains.corridor import Corridor, DrawnCorridor

CLOCK = itertools.count()


class Ring:
    """Twelve cells in a ring, written one state at a time; a walk begins at cell 1 to 3 and ends at cell 7."""

    actions = ("back", "on")
    max_steps = 30

    def start(self, rng):
        return (int(rng.integers(1, 4)), 0)

    def step(self, state, action):
        cell = (state[0] + (1 if action == "on" else -1)) % 12
        return (cell, state[1]), float(cell == 7), cell == 7


class GlobalChance(Ring):
    def step(self, state, action):
        return super().step(state, random.choice(self.actions))


class OwnChance(Ring):
    def __init__(self):
        self.dice = np.random.default_rng(0)

    def step(self, state, action):
        return super().step(state, "on" if self.dice.random() < 0.9 else action)


class Clockwork(Ring):
    """What a step does depends on a global counter."""

    def step(self, state, action):
        return super().step(state, self.actions[next(CLOCK) // 3 % 2])


class Fuel(Ring):
    """Runs out of fuel, which is not in the state."""

    def __init__(self):
        self.fuel = 20_000

    def step(self, state, action):
        self.fuel -= 1
        return super().step(state, action) if self.fuel % 7 else (state, 0.0, False)


class Prize(Ring):
    """Pays for cells that were not visited before."""

    def __init__(self):
        self.visits = {}

    def step(self, state, action):
        after, _, done = super().step(state, action)
        self.visits[after] = self.visits.get(after, 0) + 1
        return after, 1.0 / self.visits[after], done


class Goal(Ring):
    """Draws the goal at the start, and keeps it to itself."""

    def start(self, rng):
        self.goal = int(rng.integers(5, 11))
        return (1, 0)

    def step(self, state, action):
        after, _, _ = super().step(state, action)
        return after, float(after[0] == self.goal), after[0] == self.goal


class Walls(Ring):
    """Is another world each time that it is made."""

    def __init__(self):
        self.wall = int(np.random.default_rng().integers(2**31))

    def step(self, state, action):
        after, _, done = super().step(state, action)
        return (after[0], self.wall % 199), 0.0, done


class Timed(Ring):
    """Counts steps in the state."""

    def step(self, state, action):
        (cell, _), reward, done = super().step(state, action)
        return (cell, state[1] + 1), reward, done or state[1] == 29


class Dust(Ring):
    """Has digits in its states that are different each time."""

    def start(self, rng):
        return (int(rng.integers(1, 4)), float(rng.random()))

    def step(self, state, action):
        (cell, dust), reward, done = super().step(state, action)
        return (cell, (dust * 1.0001 + 0.01 * (action == "on")) % 1.0), reward, done


class Blind(Ring):
    """Shows networks only whether the cell is even."""

    def observe(self, state):
        return [state[0] % 2]


class Stuck(Ring):
    def step(self, state, action):
        super().step(state, action)
        return state, 0.0, False


class Unseeded(Ring):
    def start(self, rng):
        return (int(np.random.default_rng().integers(1, 2**20)) % 12, 0)


class Lists(Ring):
    def start(self, rng):
        return [1, 0]


class Crash(Ring):
    def step(self, state, action):
        return super().step(state, action) if action == "on" else {}[action]


class TwoThings(Ring):
    """Returns too little, and its text fails too."""

    def step(self, state, action):
        return super().step(state, action)[:2]

    def text(self, state):
        return "no such field: " + state.cell


class Infinite(Ring):
    def step(self, state, action):
        after, reward, done = super().step(state, action)
        return after, -np.inf if after[0] == 0 else reward, done


class Unfinished(Ring):
    def step(self, state, action):
        after, reward, _ = super().step(state, action)
        return after, reward, False, reward > 0


class Forgets(Ring):
    """Packs one half of the state."""

    def step(self, state, action):
        after, reward, done = super().step(state, action)
        return (after[0], after[0]), reward, done

    def pack(self, state):
        return bytes(state[:1])

    def unpack(self, data):
        return (data[0] + 1, 0)


class SlowToPack(Ring):
    max_steps = 2

    def pack(self, state):
        time.sleep(0.004)
        return bytes(state)

    def unpack(self, data):
        return tuple(data)


class Slow(Ring):
    max_steps = 2

    def step(self, state, action):
        time.sleep(0.008)
        return super().step(state, action)


class Half:
    """Has a start and no step."""

    actions = 2

    def start(self, rng):
        return 0


def changed(function):
    """Returns a `successors` whose honest answer goes through `function(states, out)`."""

    def successors(self, states):
        return function(states, Corridor.successors(self, states))

    return successors


class SingleFloats(Corridor):
    successors = changed(lambda states, out: out._replace(rewards=out.rewards.astype(np.float32)))


class Overwriting(Corridor):
    def successors(self, states):
        out = super().successors(states)
        states[:] = 1
        return out


class Neighbours(Corridor):
    successors = changed(lambda states, out: out._replace(rewards=out.rewards + (len(states) > 1) * ~out.terminal))


class Undead(Corridor):
    """Goes on paying after the end."""

    successors = changed(lambda states, out: out._replace(rewards=out.rewards + (states == 4)))


class TooFewKinds(Corridor):
    observation = Categories((1,), 3)


class GrowingPicture(DrawnCorridor):
    def render(self, state):
        return np.zeros((1 + state[0], 5, 3), np.uint8)


class ManyFaults(Corridor):
    """Breaks three promises at once."""

    name = ""
    observation = Categories((1,), 3)
    successors = Undead.successors


class OneNameForTwo(Corridor):
    action_names = ("left", "left")


class FirstVisit(Ring):
    """Pays for cells that were not visited before, and so no more once all of them were."""

    def __init__(self):
        self.seen = set()

    def step(self, state, action):
        after, reward, done = super().step(state, action)
        is_new = after not in self.seen
        self.seen.add(after)
        return after, reward + 0.1 * is_new, done


class EmptyTank(Ring):
    """Has run out of fuel before anybody looks."""

    fuel = 400

    def step(self, state, action):
        self.fuel -= 1
        return super().step(state, action) if self.fuel > 397 else (state, 0.0, False)


class LaterGoal(Ring):
    """Draws a goal at the start that only matters where random walks do not come."""

    def start(self, rng):
        self.goal = int(rng.integers(200))
        return (1, 0)

    def step(self, state, action):
        after, reward, done = super().step(state, action)
        return (after[0], 0), reward * (1 + (state[1] == 1 and self.goal)), done


class HalfAction(Ring):
    actions = 2.5
