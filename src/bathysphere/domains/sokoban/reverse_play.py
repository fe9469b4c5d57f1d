"""Reverse play: a depth-first search that drags the boxes of a solved room away from their targets."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from bathysphere.domains.sokoban.reverse_search import BITS, CELL, FREE, PATH, WALL, search

_STEPS = ((-1, 0), (1, 0), (0, -1), (0, 1))  # up, down, left, right; the opposite of direction d is d ^ 1
_FORWARD = "durlDURL"  # what undoes a step up is walking down, and so on; what undoes a pull is a push


class ReversePlay(NamedTuple):
    """The best position that a reverse play found."""

    score: int  # box changes times total distance of the boxes from home; 0 means nothing usable was found
    num_states: int  # distinct positions visited
    boxes: NDArray[np.int64]  # int64 [b, 2], row and column of each box, in the order of `targets`
    player: tuple[int, int]  # row and column
    solution: str  # forward moves that solve that position, LURD, pushes in capitals


def play_backwards(
    room: NDArray[np.bool_],
    targets: NDArray[np.int64],
    player: tuple[int, int],
    max_depth: int = 300,
    max_states: int = 300_000,
) -> ReversePlay:
    """Searches positions reachable by pulling boxes off their targets for the one with the best score.

    The search goes depth first with actions in a fixed order: walk up, down, left, right dragging the box
    directly behind, if any; then the same four without dragging. Positions seen before are not entered again.
    The score of a position is `changes * distance`: `changes` counts, along the search path, how often "which
    box was pulled in this move, or none" differs from the move before; `distance` sums the boxes' Manhattan
    distances from the targets they started on. It is 0 while any box is on any target. The first of equals
    wins.

    Args:
      room: where one can walk, bool [height, width], False on the border.
      targets: row and column of each target, int64 [b, 2], b >= 1, distinct. A box starts on each.
      player: row and column of the player, not on a box.
      max_depth: positions on a search path stay below this number.
      max_states: most distinct positions visited.

    Returns:
      The best position; score 0, boxes at home and an empty solution if there is none.
    """
    places = np.argwhere(room)
    index = np.full(room.shape, len(places), np.int64)
    index[room] = np.arange(len(places))
    num_words = (len(places) + BITS - 1) // BITS
    num_slots = 1 << (2 * min(max_states, math.comb(len(places), len(targets)))).bit_length()
    homes = index[targets[:, 0], targets[:, 1]]
    boxes, moves = homes.copy(), np.empty(max_depth, np.int64)
    score, num_states, cell, num_moves = search(
        np.stack([index[places[:, 0] + dy, places[:, 1] + dx] for dy, dx in _STEPS], axis=1),
        np.abs(places[None] - targets[:, None]).sum(axis=2),
        _cells_at_home(len(places), homes),
        np.zeros(num_words, np.int64),
        np.zeros((num_slots, 2 * num_words), np.int64),
        np.zeros(max_depth, PATH),
        index[player],
        max_states,
        boxes,
        moves,
    )
    row, column = places[cell]
    solution = "".join(_FORWARD[move] for move in moves[:num_moves][::-1])
    return ReversePlay(int(score), int(num_states), places[boxes], (int(row), int(column)), solution)


def _cells_at_home(num_cells: int, targets: NDArray[np.int64]) -> NDArray[np.void]:
    """Returns the cells of a solved room, CELL [F + 1], with box i on the cell `targets[i]`."""
    cells = np.zeros(num_cells + 1, CELL)
    cells["content"] = FREE
    cells["content"][num_cells] = WALL
    cells["content"][targets] = np.arange(len(targets))
    cells["is_target"][targets] = 1
    words, bits = np.divmod(np.arange(num_cells), BITS)
    cells["word"][:-1], cells["bit"][:-1] = words, 1 << bits
    # Hashes only spread positions over the table, which compares whole sets; any fixed numbers serve.
    cells["hash"][:-1] = np.random.default_rng(0).integers(2**62, size=num_cells)
    return cells
