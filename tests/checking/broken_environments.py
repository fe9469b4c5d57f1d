"""Gymnasium environments that are broken on purpose, each in one way: a walk of twelve cells, to cell 7."""

import gymnasium
from gymnasium import spaces


class Walk(gymnasium.Env):
    """Sound: begins at a cell from 1 to 3, goes back or on, and ends at cell 7."""

    action_space = spaces.Discrete(2)
    observation_space = spaces.Discrete(12)

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.cell = int(self.np_random.integers(1, 4))
        return self.cell, {}

    def step(self, action):
        self.cell = (self.cell + 2 * int(action) - 1) % 12
        return self.cell, float(self.cell == 7), self.cell == 7, False, {}


class Slippery(Walk):
    def step(self, action):
        return super().step(action if self.np_random.random() < 0.7 else 1 - action)


class Continuous(Walk):
    action_space = spaces.Box(-1.0, 1.0, (1,))


class CopyResets(Walk):
    """Forgets where it was when it is copied."""

    def __reduce__(self):
        return _fresh, (type(self),)


class Outside(Walk):
    """Shows numbers that its observation space does not have."""

    observation_space = spaces.Discrete(5)


class NoNumber(Walk):
    def step(self, action):
        return self.cell, float("nan"), False, False, {}


class Hides(Walk):
    """Shows only whether the cell is even; what tells states apart is in the snapshot."""

    observation_space = spaces.Discrete(2)

    def reset(self, *, seed=None, options=None):
        return super().reset(seed=seed)[0] % 2, {}

    def step(self, action):
        cell, *rest = super().step(action)
        return cell % 2, *rest


class Crashes(Walk):
    def step(self, action):
        if self.cell == 0:
            raise RuntimeError("fell off the left end")
        return super().step(action)


def _fresh(kind):
    env = kind()
    env.reset(seed=0)
    return env


def hides_in_observation():
    """A key that merges states which differ."""
    from bathysphere.domains.adapters.gymnasium import from_gymnasium

    return from_gymnasium(lambda: Hides(), key="observation")


def noise():
    """Slippery ice, in a wrapper that the table of its chances does not know of."""
    return gymnasium.wrappers.TransformReward(gymnasium.make("FrozenLake-v1"), lambda reward: 2 * reward)


def pendulum():
    """Actions that are no whole numbers."""
    return gymnasium.make("Pendulum-v1")
