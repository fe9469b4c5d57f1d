"""A small world that offers what every domain must, and nothing else."""

import numpy as np

from bathysphere.domains.base import Categories, Successors


class Corridor:
    """Five cells; the right end is the goal, the left end a pit. The state is the cell."""

    name = "corridor"
    state_size = 1
    action_names = ("left", "right")
    max_steps = 10
    observation = Categories((1,), 5)

    def initial(self, n, rng):
        return rng.integers(1, 4, size=(n, 1)).astype(np.uint8)

    def successors(self, states):
        cells = states.astype(int)
        moved = np.where((cells == 0) | (cells == 4), cells, cells + np.array([-1, 1])).astype(np.uint8)
        rewards = ((moved == 4) & (cells != 4)).astype(np.float64)
        return Successors(moved[:, :, None], rewards, (moved == 0) | (moved == 4), moved == 4)

    def observe(self, states):
        return states.astype(np.int32)


class DrawnCorridor(Corridor):
    """The same with pictures and text."""

    def render(self, state):
        picture = np.zeros((1, 5, 3), np.uint8)
        picture[0, state[0]] = 255
        return picture

    def text(self, state):
        return "".join("o" if cell == state[0] else "." for cell in range(5))
