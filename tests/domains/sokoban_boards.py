"""Boards for the Sokoban tests."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from bathysphere.domains.sokoban.levels import grid_text


def random_board(
    rng: np.random.Generator, height: int, width: int, num_boxes: int, closed: bool = False
) -> NDArray[np.uint8]:
    """Scatters walls, boxes (half of them home), targets and a player, also on the border unless `closed`."""
    while True:
        grid = np.where(rng.random((height, width)) < 0.2, 0, 1).astype(np.uint8)
        if closed:
            grid[[0, -1]] = 0
            grid[:, [0, -1]] = 0
        cells = rng.permutation(np.flatnonzero(grid))
        if len(cells) <= num_boxes:
            continue
        flat = grid.ravel()
        boxes, player = cells[:num_boxes], cells[num_boxes]
        flat[boxes] = 4
        flat[player] = 5
        home = boxes[rng.random(num_boxes) < 0.5]
        others = rng.permutation(np.setdiff1d(cells, home))[: num_boxes - len(home)]
        for cell in (*home, *others):
            flat[cell] = {1: 2, 4: 3, 5: 6}[int(flat[cell])]
        return grid


def rows_of(state: NDArray[np.uint8], shape: tuple[int, int]) -> list[str]:
    return grid_text(state.reshape(shape)).split("\n")
