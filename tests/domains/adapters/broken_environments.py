"""Environments that are broken on purpose, each in one way."""

import threading

import gymnasium
import numpy as np
from gymnasium import spaces

SIZE = 6


class Corridor(gymnasium.Env):
    """Cells in a row, the goal in the last; nothing is wrong with it."""

    action_space = spaces.Discrete(2)
    observation_space = spaces.Discrete(SIZE)

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.cell = 0
        return self.look(), {}

    def step(self, action):
        self.cell = int(np.clip(self.cell + (1 if action else -1), 0, SIZE - 1))
        won = self.cell == SIZE - 1
        return self.look(), float(won), won, False, {}

    def look(self):
        return self.cell


class Slippery(Corridor):
    """A step may fail."""

    def step(self, action):
        return super().step(action if self.np_random.random() < 0.8 else 0)


class DrawsGlobally(Corridor):
    """A step may fail, by a generator that all programs share."""

    def step(self, action):
        return super().step(action if np.random.random() < 0.8 else 0)  # noqa: NPY002


class SharedGenerator(Corridor):
    """A step may fail, by a generator that belongs to the class."""

    generator = np.random.default_rng(0)

    def step(self, action):
        return super().step(action if self.generator.random() < 0.8 else 0)


class RandomReset(Corridor):
    """Ignores the seed of a reset."""

    generator = np.random.default_rng(0)

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.cell = int(self.generator.integers(SIZE - 1))
        return self.look(), {}


class CopyResets(Corridor):
    """A copy begins at the beginning, as those of gymnasium.utils.EzPickle do."""

    def __getstate__(self):
        return {}

    def __setstate__(self, state):
        self.reset(seed=0)


class CopyShares(Corridor):
    """All copies have one board."""

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.board = np.zeros(1, np.int64)
        return 0, {}

    def step(self, action):
        self.cell = int(self.board[0])
        answer = super().step(action)
        self.board[0] = self.cell
        return answer

    def __deepcopy__(self, memo):
        twin = type(self)()
        twin.__dict__.update(self.__dict__)
        return twin

    def __reduce_ex__(self, protocol):
        raise TypeError("no pickles")


class CannotBeCopied(Corridor):
    """Holds something of the system."""

    def __init__(self):
        self.lock = threading.Lock()


class WithAccess(Corridor):
    """Hands out its state, so that nothing need be copied."""

    def get_state(self):
        return self.cell

    def set_state(self, state):
        self.cell = state

    def __reduce_ex__(self, protocol):
        raise TypeError("no pickles")


class Doubling(gymnasium.Wrapper):
    """Makes every second step twice."""

    odd = False

    def reset(self, **settings):
        self.odd = False
        return super().reset(**settings)

    def step(self, action):
        self.odd = not self.odd
        answer = super().step(action)
        return answer if self.odd or answer[2] else super().step(action)


class Aliasing(Corridor):
    """Shows only whether the cell is even, of seven cells."""

    observation_space = spaces.Discrete(2)

    def look(self):
        return self.cell % 2


class Counting(Corridor):
    """Counts its steps, and ends episodes by that count."""

    def reset(self, *, seed=None, options=None):
        self.count = 0
        return super().reset(seed=seed)

    def step(self, action):
        self.count += 1
        look, reward, over, _, info = super().step(action)
        return look, reward, over or self.count >= 20, False, info


class Truncating(Counting):
    """The same count as what it should be: a time limit."""

    def step(self, action):
        look, reward, over, _, info = Corridor.step(self, action)
        self.count += 1
        return look, reward, over, self.count >= 20, info


class Masked(Corridor):
    """Forbids to go left in the first cell, where it would fail."""

    def step(self, action):
        assert action or self.cell, "impossible"
        look, reward, over, cut, info = super().step(action)
        return look, reward, over, cut, info | self.info()

    def reset(self, *, seed=None, options=None):
        look, info = super().reset(seed=seed)
        return look, info | self.info()

    def info(self):
        return {"action_mask": np.array([self.cell > 0, True], np.int8)}


class MaskedByMethod(Corridor):
    """The same by a method."""

    def step(self, action):
        assert action or self.cell, "impossible"
        return super().step(action)

    def action_masks(self):
        return [self.cell > 0, True]


class SaysSuccess(Corridor):
    """Pays nothing for the goal, and says so in info."""

    def step(self, action):
        look, _, over, cut, info = super().step(action)
        return look, -1.0, over, cut, info | {"is_success": over}


class Everything(Corridor):
    """Shows its cell in every kind of space."""

    observation_space = spaces.Dict(
        {
            "number": spaces.Discrete(SIZE, start=3),
            "pair": spaces.Tuple((spaces.MultiDiscrete([SIZE, 2]), spaces.MultiBinary(3))),
            "text": spaces.Text(20),
            "box": spaces.Box(-1.0, 1.0, (2, 2), np.float32),
        }
    )

    def look(self):
        return {
            "number": self.cell + 3,
            "pair": (np.array([self.cell, 1]), np.array([1, 0, 1], np.int8)),
            "text": "cell " + "abcdef"[self.cell],
            "box": np.full((2, 2), self.cell / SIZE, np.float32),
        }
