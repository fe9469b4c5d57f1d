"""Maps of a Sokoban board: where the player could stand, and what single pushes could follow."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from bathysphere.domains.base import StateMap
from bathysphere.domains.sokoban.rules import (
    BOX,
    BOX_ON_TARGET,
    COLUMN_STEPS,
    FLOOR,
    PLAYER,
    PLAYER_ON_TARGET,
    ROW_STEPS,
    TARGET,
)
from bathysphere.domains.sokoban.tiles import draw_board

Grid = NDArray[np.uint8]  # cell codes, uint8 [height, width]


def state_maps(grid: Grid) -> list[StateMap]:
    """Returns both maps of a board that has a player."""
    return [_positions(grid), _pushes(grid)]


def _positions(grid: Grid) -> StateMap:
    """Returns the board with the player moved to every free cell, boxes as they are."""
    empty = _without_player(grid)
    cells = np.argwhere((empty == FLOOR) | (empty == TARGET))
    states = [_with_player(empty, row, column) for row, column in cells.tolist()]
    return _map("player", grid, states, cells.astype(np.float64), None)


def _pushes(grid: Grid) -> StateMap:
    """Returns the board after each push that the player can walk to; arrows lie in the box's new cell."""
    empty, reached = _without_player(grid), _reached(grid)
    states, cells, arrows = list[Grid](), list[tuple[float, float]](), list[float]()
    for row, column in np.argwhere((grid == BOX) | (grid == BOX_ON_TARGET)).tolist():
        for action, (down, right) in enumerate(zip(ROW_STEPS, COLUMN_STEPS, strict=True)):
            ahead = empty[row + down, column + right]
            if (row - down, column - right) not in reached or ahead not in (FLOOR, TARGET):
                continue
            pushed = empty.copy()
            pushed[row + down, column + right] = BOX_ON_TARGET if ahead == TARGET else BOX
            pushed[row, column] = TARGET if grid[row, column] == BOX_ON_TARGET else FLOOR
            states.append(_with_player(pushed, row, column))
            cells.append((row + 0.7 * down, column + 0.7 * right))
            arrows.append(90.0 * action)
    return _map("single pushes", grid, states, np.array(cells, np.float64).reshape(-1, 2), np.array(arrows))


def _map(
    name: str, grid: Grid, states: list[Grid], cells: NDArray[np.float64], arrows: NDArray[np.float64] | None
) -> StateMap:
    height, width = grid.shape
    rows = np.array(states, np.uint8).reshape(len(states), grid.size)
    return StateMap(name, rows, cells, (height, width), arrows, draw_board(grid))


def _without_player(grid: Grid) -> Grid:
    empty = grid.copy()
    empty[grid == PLAYER], empty[grid == PLAYER_ON_TARGET] = FLOOR, TARGET
    return empty


def _with_player(empty: Grid, row: int, column: int) -> Grid:
    placed = empty.copy()
    placed[row, column] = PLAYER_ON_TARGET if empty[row, column] == TARGET else PLAYER
    return placed


def _reached(grid: Grid) -> set[tuple[int, int]]:
    """Returns the cells to which the player can walk without a push, (row, column) each."""
    todo = [(int(row), int(column)) for row, column in np.argwhere(grid >= PLAYER)]
    reached = set(todo)
    while todo:
        row, column = todo.pop()
        for down, right in zip(ROW_STEPS, COLUMN_STEPS, strict=True):
            cell = row + down, column + right
            is_inside = 0 <= cell[0] < grid.shape[0] and 0 <= cell[1] < grid.shape[1]
            if is_inside and cell not in reached and grid[cell] in (FLOOR, TARGET):
                reached.add(cell)
                todo.append(cell)
    return reached
