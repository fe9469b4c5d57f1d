"""From the rows of a drawn board to cell codes, refusing boards that cannot be played."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from bathysphere.domains.sokoban.levels import TILES
from bathysphere.domains.sokoban.rules import (
    BOX,
    BOX_ON_TARGET,
    FLOOR,
    PLAYER,
    PLAYER_ON_TARGET,
    TARGET,
    WALL,
)
from bathysphere.errors import BathysphereError

_UNKNOWN = len(TILES)
_CODES = np.full(256, _UNKNOWN, np.uint8)  # by character
_CODES[[ord(tile) for tile in TILES]] = np.arange(len(TILES))


def board_from_rows(rows: Sequence[tuple[int, str]], source: str) -> NDArray[np.uint8]:
    """Returns the cell codes, uint8 [height, width], of a board drawn with XSB characters.

    Short rows are filled up, and floor outside the walls becomes wall.

    Args:
      rows: (line number, characters) from top to bottom, at least one.
      source: name of the file, for messages.

    Raises:
      BathysphereError: for an unknown tile, not exactly one player, no box, another number of targets than
        boxes, or a wall with a hole.
    """
    width = max(len(row) for _, row in rows)
    lines = [number for number, _ in rows]
    drawn = "".join(row.ljust(width) for _, row in rows)
    grid = _CODES[np.frombuffer(drawn.encode("latin-1", "replace"), np.uint8)].reshape(len(rows), width)
    count = np.bincount(grid.ravel(), minlength=_UNKNOWN + 1).tolist()
    if count[_UNKNOWN]:
        y, x = np.argwhere(grid == _UNKNOWN)[0].tolist()
        raise BathysphereError(
            f"{source}, line {lines[y]}: unknown tile {rows[y][1][x]!r} in column {x + 1}. Boards are drawn "
            f"with {TILES!r} (wall, floor, target, box on target, box, player, player on target)."
        )
    num_players = count[PLAYER] + count[PLAYER_ON_TARGET]
    if num_players == 0:
        raise BathysphereError(f"{source}, line {lines[0]}: the level that starts here has no player. Add one @ or +.")
    if num_players > 1:
        second = np.argwhere(grid >= PLAYER)[1, 0]
        raise BathysphereError(
            f"{source}, line {lines[second]}: a second player in the level that starts in line "
            f"{lines[0]}. Keep one @ or +."
        )
    num_boxes = count[BOX] + count[BOX_ON_TARGET]
    num_targets = count[TARGET] + count[BOX_ON_TARGET] + count[PLAYER_ON_TARGET]
    if num_boxes == 0 or num_boxes != num_targets:
        advice = "Add some." if num_boxes == 0 else "Draw as many $ as . (a * is both, a + has a target)."
        raise BathysphereError(
            f"{source}, line {lines[0]}: the level that starts here has {num_boxes} boxes and {num_targets} "
            f"targets; they must be equally many, at least one. {advice}"
        )
    _close(grid, lines, source)
    return grid


def _close(grid: NDArray[np.uint8], lines: Sequence[int], source: str) -> None:
    """Turns what is outside the walls into wall, or refuses if that is more than floor.

    Mutates: grid.
    """
    height, width = grid.shape
    if not (grid[0].any() or grid[-1].any() or grid[:, 0].any() or grid[:, -1].any()):
        return  # walls all around, as almost always
    outside = [(y, x) for y in (0, height - 1) for x in np.flatnonzero(grid[y]).tolist()]
    outside += [(y, x) for x in (0, width - 1) for y in np.flatnonzero(grid[:, x]).tolist()]
    while outside:
        y, x = outside.pop()
        if grid[y, x] == WALL:
            continue
        if grid[y, x] != FLOOR:
            raise BathysphereError(
                f"{source}, line {lines[y]}: the wall is not closed, {TILES[grid[y, x]]!r} in column {x + 1} "
                "is connected to the outside. Surround players, boxes and targets with #."
            )
        grid[y, x] = WALL
        for dy, dx in ((-1, 0), (1, 0), (0, -1), (0, 1)):
            if 0 <= y + dy < height and 0 <= x + dx < width:
                outside.append((y + dy, x + dx))
