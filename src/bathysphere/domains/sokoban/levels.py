"""A Sokoban level: its board, its name, perhaps a solution."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from bathysphere.domains.sokoban.rules import ACTION_NAMES, BOX, BOX_ON_TARGET, Rewards, is_solved, successors
from bathysphere.errors import BathysphereError

TILES = "# .*$@+"  # XSB characters, by cell code
_ACTION_OF_LETTER = {name[0]: action for action, name in enumerate(ACTION_NAMES)}


@dataclass(frozen=True, eq=False)
class Level:
    """One board. Nothing of it lies outside closed walls; what readers find outside becomes wall."""

    title: str
    """Name of the level, one line."""
    grid: NDArray[np.uint8]
    """Cell codes, uint8 [height, width]."""
    solution: str | None = None
    """Moves that solve it, one letter of `lurd` each, in capitals where a box is pushed."""

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Level):
            return NotImplemented
        same = self.title == other.title and self.solution == other.solution
        return same and np.array_equal(self.grid, other.grid)

    def __hash__(self) -> int:
        return hash((self.title, self.grid.tobytes(), self.solution))

    @property
    def shape(self) -> tuple[int, int]:
        """(height, width) in cells."""
        height, width = self.grid.shape
        return height, width


def grid_text(grid: NDArray[np.uint8]) -> str:
    """Draws cell codes, uint8 [height, width], with XSB characters, one line per row."""
    return "\n".join("".join(TILES[code] if code < len(TILES) else "?" for code in row) for row in grid)


def replay_moves(level: Level, moves: str) -> NDArray[np.uint8]:
    """Plays `moves`, letters of `lurd` in either case, and returns the positions, uint8 [len(moves) + 1, S].

    Capitals are not enforced: the rules alone decide whether a box is pushed. A blocked move changes nothing.
    """
    state = np.ascontiguousarray(level.grid).reshape(1, -1)
    history = [state]
    for letter in moves:
        if letter.lower() not in _ACTION_OF_LETTER:
            raise BathysphereError(f"Moves are the letters l, u, r and d; got {letter!r} in level '{level.title}'.")
        state = successors(state, level.shape, Rewards()).states[:, _ACTION_OF_LETTER[letter.lower()]]
        history.append(np.ascontiguousarray(state))
    return np.concatenate(history)


def solves(level: Level, moves: str) -> bool:
    """Tells whether `moves` solve `level`."""
    return bool(is_solved(replay_moves(level, moves)[-1:])[0])


def checked_solution(level: Level, actions: Sequence[int]) -> str | None:
    """Replays `actions` (numbers of `ACTION_NAMES`) and returns them as `Level.solution` has them.

    Detours back to a position that was there before are left out; with them go moves that change nothing, which other
    programs do not know. None if the level is not solved.
    """
    letters = "".join(ACTION_NAMES[action][0] for action in actions)
    history = replay_moves(level, letters)
    is_box = np.isin(history, (BOX, BOX_ON_TARGET))
    pushed = (is_box[1:] != is_box[:-1]).any(axis=1)
    solution: list[str] = []
    moves_to = {history[0].tobytes(): 0}  # the length of the solution so far, by every position on it
    for letter, push, position in zip(letters, pushed, history[1:], strict=True):
        key = position.tobytes()
        if key in moves_to:
            del solution[moves_to[key] :]
            moves_to = {key: length for key, length in moves_to.items() if length <= len(solution)}
        else:
            solution.append(letter.upper() if push else letter)
            moves_to[key] = len(solution)
    text = "".join(solution)
    return text if solves(level, text) else None


def pad(grid: NDArray[np.uint8], shape: tuple[int, int]) -> NDArray[np.uint8]:
    """Surrounds a board with walls, below and to the right, up to `shape`."""
    padded = np.zeros(shape, np.uint8)
    padded[: grid.shape[0], : grid.shape[1]] = grid
    return padded
