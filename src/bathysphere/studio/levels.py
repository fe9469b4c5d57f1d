"""Sokoban levels in the studio: pasted, opened, generated, or drawn by mouse."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from bathysphere.domains.sokoban import GeneratorConfig, Level, parse_levels
from bathysphere.domains.sokoban.generator import generate_level
from bathysphere.domains.sokoban.levels import grid_text
from bathysphere.domains.sokoban.rules import BOX, BOX_ON_TARGET, FLOOR, PLAYER, PLAYER_ON_TARGET, TARGET, WALL
from bathysphere.domains.sokoban.tiles import draw_board
from bathysphere.errors import BathysphereError

MAX_CHARACTERS = 1 << 20
MAX_SIDE = 40  # of a level that is drawn by mouse or shown
TOOLS = {"wall": WALL, "floor": FLOOR, "target": TARGET, "box": BOX, "player": PLAYER}
_ON_TARGET = {BOX: BOX_ON_TARGET, PLAYER: PLAYER_ON_TARGET}
_TARGETS = (TARGET, BOX_ON_TARGET, PLAYER_ON_TARGET)


def read_text(text: str, source: str = "The text") -> list[Level]:
    """Returns the levels in a text, in any of the known formats."""
    if len(text) > MAX_CHARACTERS:
        raise BathysphereError(f"{source} has more than {MAX_CHARACTERS >> 20} MB. Split it.")
    levels = parse_levels(text, source)
    for number, level in enumerate(levels, 1):
        if max(level.shape) > MAX_SIDE:
            raise BathysphereError(f"Level {number} has {level.shape} cells; the studio shows up to {MAX_SIDE} a side.")
    return levels


def generated(height: int, width: int, num_boxes: int, seed: int) -> Level:
    """Returns a level made by the generator."""
    return generate_level(GeneratorConfig(height=height, width=width, num_boxes=num_boxes), seed, 0).level


def paint(grid: NDArray[np.uint8], row: int, column: int, tool: str) -> NDArray[np.uint8]:
    """Returns a board, uint8 [height, width], with one cell changed.

    A box or a player on a target stays on it; a player that is put elsewhere leaves the cell it was in. The outermost
    cells are walls and stay so.
    """
    height, width = grid.shape
    if tool not in TOOLS:
        raise BathysphereError(f"There is no tool {tool!r}; there are {', '.join(TOOLS)}.")
    if not (0 <= row < height and 0 <= column < width):
        raise BathysphereError(f"There is no cell {row}, {column} on a board of {height}x{width}.")
    if row in (0, height - 1) or column in (0, width - 1):
        return grid
    changed, code = grid.copy(), TOOLS[tool]
    if code == PLAYER:
        changed[changed == PLAYER] = FLOOR
        changed[changed == PLAYER_ON_TARGET] = TARGET
    changed[row, column] = _ON_TARGET.get(code, code) if changed[row, column] in _TARGETS else code
    if code == TARGET and grid[row, column] in (BOX, PLAYER):
        changed[row, column] = _ON_TARGET[int(grid[row, column])]
    if code == FLOOR and grid[row, column] in (BOX_ON_TARGET, PLAYER_ON_TARGET):
        changed[row, column] = TARGET
    return changed


def checked(grid: NDArray[np.uint8]) -> Level:
    """Returns a drawn board as a level.

    Raises:
      BathysphereError: if it cannot be played, with what is wrong.
    """
    return Level("drawn here", read_text(grid_text(grid), "The board")[0].grid)


def tile_pictures(size: int = 48) -> list[NDArray[np.uint8]]:
    """Returns a picture of each cell code, uint8 [size, size, 3]."""
    return [draw_board(np.full((1, 1), code, np.uint8), size) for code in range(PLAYER_ON_TARGET + 1)]
