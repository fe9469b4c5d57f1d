"""The kernels of reverse play: one depth-first search from a solved room, without allocating anything."""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit

BITS = 63  # cells per word of a set of cells: words stay non-negative int64, compiled or not
FREE, WALL = -1, -2  # what is in a cell, besides the number of a box
_LOWEST_BIT = np.array([0, *((mask & -mask).bit_length() - 1 for mask in range(1, 256))])

# No reference counting: it costs more than the search does, and kernels neither allocate nor keep anything.
_OPTIONS: Any = {"cache": True, "nogil": True, "_nrt": False}
_kernel: Any = njit(**_OPTIONS)
_inlined: Any = njit(inline="always", **_OPTIONS)

# What is known of a cell.
CELL = np.dtype(
    [
        ("content", np.int64),  # number of the box in it, FREE or WALL
        ("is_target", np.int64),  # 0 or 1
        ("hash", np.int64),  # non-negative
        ("word", np.int64),  # in a set of cells, the word that has its bit
        ("bit", np.int64),  # the bit; 0 for walls, which all are the last cell
    ]
)
# One position of a search path: what it is, how it was reached, what its score needs.
PATH = np.dtype(
    [
        ("player", np.int64),  # cell
        ("slot", np.int64),  # the table's row for its boxes
        ("key", np.int64),  # the hash of its boxes
        ("actions", np.int64),  # those left to try, see `_open_actions`
        ("direction", np.int64),  # of the step that led here
        ("pull", np.int64),  # number of the box pulled in that step, or -1
        ("changes", np.int64),  # see `play_backwards`
        ("distance", np.int64),  # see `play_backwards`
        ("covered", np.int64),  # boxes on targets
    ]
)


@_kernel
def search(  # type: ignore[no-untyped-def]
    neighbours, distances, cells, boxes, table, path, start, max_states, best_boxes, best_moves
):
    """The depth-first search of `play_backwards` with an explicit stack, over cells numbered 0..F-1.

    Visited positions live in an open-addressing table with one row per set of box cells (W words) beside the
    set of player cells seen with it (W words), so that walking costs one bit test and only pulling costs a
    lookup.

    Invariants: the contents of `cells` and the set `boxes` describe the position at the current depth; at most about
    half of the table is used, because it has twice as many rows as there can be sets; a set of boxes is never empty.

    Args:
      neighbours: int64 [F, 4], the cell in each direction or F for a wall.
      distances: int64 [b, F] of each cell from the target of each box.
      cells: CELL [F + 1], of the solved room.
      boxes: int64 [W], zeros.
      table: int64 [a power of two, 2 W], zeros.
      path: PATH [max_depth], zeros.
      start: the player's cell.
      max_states: the limit.
      best_boxes: int64 [b], the cells of the boxes at home.
      best_moves: int64 [max_depth], with any contents.

    Mutates: cells, boxes, table, path; best_boxes, to the cells of the best position; best_moves, to the moves from the
      last solved position before it: the direction, plus 4 where a box was pulled.

    Returns:
      (score, number of visited positions, player's cell in the best one, number of best moves).
    """
    _begin(neighbours, cells, boxes, table, path, start)
    best_score, best_player, num_moves = np.int64(0), start, 0
    num_states = 1
    depth = 0
    while depth >= 0 and num_states < max_states:
        if path[depth]["actions"] == 0:
            _leave(neighbours, cells, boxes, path, depth)
            depth -= 1
        elif _enter_next(neighbours, distances, cells, boxes, table, path, depth):
            depth += 1
            num_states += 1
            score = path[depth]["changes"] * path[depth]["distance"]
            if path[depth]["covered"] == 0 and score > best_score:
                best_score, best_player = score, path[depth]["player"]
                _write_boxes(cells, best_boxes)
                num_moves = _write_moves(path, depth, len(best_boxes), best_moves)
    return best_score, num_states, best_player, num_moves


@_kernel
def _begin(neighbours, cells, boxes, table, path, start):  # type: ignore[no-untyped-def]
    """Makes the solved position with the player at `start` the first of the path.

    Mutates: boxes, table; path, at depth 0.
    """
    key = np.int64(0)
    for cell in cells:
        if cell["content"] >= 0:
            boxes[cell["word"]] |= cell["bit"]
            key ^= cell["hash"]
            path[0]["covered"] += 1
    path[0]["player"], path[0]["key"], path[0]["pull"] = start, key, -1
    path[0]["slot"] = _slot(table, boxes, key)
    table[path[0]["slot"], len(boxes) + cells[start]["word"]] |= cells[start]["bit"]
    path[0]["actions"] = _open_actions(neighbours, cells, table, path, 0)


@_inlined
def _enter_next(neighbours, distances, cells, boxes, table, path, depth):  # type: ignore[no-untyped-def]
    """Takes the next action left at `depth`; returns False if it leads to a position seen before, which is not entered.

    Mutates: path, its actions at `depth` and all at `depth + 1`; the contents of cells; boxes; table.
    """
    left = path[depth]["actions"]
    path[depth]["actions"] = left & (left - 1)
    action = _LOWEST_BIT[left]
    direction = action & 3
    here = path[depth]["player"]
    there, behind = neighbours[here, direction], neighbours[here, direction ^ 1]
    box = max(cells[behind]["content"], -1) if action < 4 else -1
    slot, key = path[depth]["slot"], path[depth]["key"]
    if box >= 0:
        key ^= cells[behind]["hash"] ^ cells[here]["hash"]
        _swap(cells, boxes, behind, here)
        slot = _slot(table, boxes, key)
    seen = len(boxes) + cells[there]["word"]
    if table[slot, seen] & cells[there]["bit"]:
        if box >= 0:
            _swap(cells, boxes, behind, here)
        return False
    table[slot, seen] |= cells[there]["bit"]

    before, after = path[depth], path[depth + 1]
    after["player"], after["slot"], after["key"] = there, slot, key
    after["direction"], after["pull"] = direction, box
    after["changes"] = before["changes"] + (box != before["pull"])
    after["distance"], after["covered"] = before["distance"], before["covered"]
    if box >= 0:
        cells[behind]["content"], cells[here]["content"] = FREE, box
        after["distance"] += distances[box, here] - distances[box, behind]
        after["covered"] += cells[here]["is_target"] - cells[behind]["is_target"]
    after["actions"] = _open_actions(neighbours, cells, table, path, depth + 1)
    return True


@_inlined
def _leave(neighbours, cells, boxes, path, depth):  # type: ignore[no-untyped-def]
    """Undoes the step that led to `depth`: a box that was pulled stands where the player was one step before.

    Mutates: the contents of cells; boxes.
    """
    box = path[depth]["pull"]
    if box >= 0:
        here = path[depth - 1]["player"]
        origin = neighbours[here, path[depth]["direction"] ^ 1]
        cells[here]["content"], cells[origin]["content"] = FREE, box
        _swap(cells, boxes, here, origin)


@_inlined
def _open_actions(neighbours, cells, table, path, depth):  # type: ignore[no-untyped-def]
    """Returns the actions worth trying at `depth`, as bits 0 to 7: those whose cell is free, without known repeats.

    Bit d walks in direction d and drags the box behind, if any; bit 4 + d leaves a box behind where it is, and is
    not set if there is none. Where the path may not become longer there is no action. Invariant: what has been seen
    stays so, and boxes are where they are now whenever an action of this position is tried, so the answer holds until
    all of them are.
    """
    if depth >= len(path) - 2:
        return 0
    seen = table[path[depth]["slot"], table.shape[1] // 2 :]
    free, pullable, unseen = 0, 0, 0
    for direction in range(4):
        there = cells[neighbours[path[depth]["player"], direction]]
        free |= (there["content"] == FREE) << direction
        pullable |= (there["content"] >= 0) << (direction ^ 1)
        unseen |= ((seen[there["word"]] & there["bit"]) == 0) << direction
    return (free & (pullable | unseen)) | ((free & pullable & unseen) << 4)


@_inlined
def _swap(cells, boxes, one, other):  # type: ignore[no-untyped-def]
    """Moves a box between two cells, from the one that has it to the other.

    Mutates: boxes.
    """
    boxes[cells[one]["word"]] ^= cells[one]["bit"]
    boxes[cells[other]["word"]] ^= cells[other]["bit"]


@_kernel
def _slot(table, boxes, key):  # type: ignore[no-untyped-def]
    """Returns the row of `table` for the set `boxes`, taking an empty one if the set is new.

    Mutates: table: the first W words of a new set's row.
    """
    num_words = boxes.shape[0]
    slot = key & (table.shape[0] - 1)
    while True:
        same = True
        empty = True
        for word in range(num_words):
            same &= table[slot, word] == boxes[word]
            empty &= table[slot, word] == 0
        if same:
            return slot
        if empty:
            for word in range(num_words):
                table[slot, word] = boxes[word]
            return slot
        slot = (slot + 1) & (table.shape[0] - 1)


@_kernel
def _write_boxes(cells, best_boxes):  # type: ignore[no-untyped-def]
    """Writes down where the boxes are.

    Mutates: best_boxes.
    """
    for number in range(len(cells)):
        if cells[number]["content"] >= 0:
            best_boxes[cells[number]["content"]] = number


@_kernel
def _write_moves(path, depth, num_boxes, best_moves):  # type: ignore[no-untyped-def]
    """Writes down the moves to `depth` since the last solved position, where forward play ends; returns their number.

    Mutates: best_moves.
    """
    solved = depth
    while path[solved]["covered"] < num_boxes:
        solved -= 1
    for move in range(depth - solved):
        step = path[solved + 1 + move]
        best_moves[move] = step["direction"] + 4 * (step["pull"] >= 0)
    return depth - solved
