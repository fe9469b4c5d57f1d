"""What searches over the cells of a level share."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

FAR = 1 << 20  # pushes to the goal from where no push leads to it
BITS = 63  # cells per word of a set: words stay non-negative int64, compiled or not


def push_distances(neighbours: NDArray[np.int64], goal: NDArray[np.int64]) -> NDArray[np.int64]:
    """Returns the pushes that a lone box needs at least from each cell to the nearest one of `goal`. Int64 [F + 1]."""
    wall = len(neighbours) - 1
    distances = np.full(wall + 1, FAR)
    reached, pushes = goal, 0
    while len(reached):
        distances[reached] = pushes
        origins = neighbours[reached]
        # To push a box off its origin the player stands beyond it. Beyond a wall there are walls.
        is_new = (neighbours[origins, np.arange(4)] != wall) & (distances[origins] == FAR)
        reached, pushes = np.unique(origins[is_new]), pushes + 1
    return distances
