"""The compiled inner loops of the search for shorter solutions; see improving.py. Slow twin: tests/oracles."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numba import njit
from numpy.typing import NDArray

from bathysphere.puzzles.cells import FAR

# A cost is one number: what counts first in its upper half, what breaks ties in the lower one. A push is also a move,
# so it costs one of each; a walk, which is a move without a push, costs one of what counts moves.
PUSH_COST = (1 << 32) + 1
OTHER_BOX = 3  # how far a move by one cell leads, if it moves another box than the move before; else 1
MORE, NOTHING = -1, -2  # what `search` answers instead of a state

# What is known of a state, in one byte; see `search`. Directions take two bits each.
_WALKED, _WALK_SHIFT = 4, 0  # whether it was put into the queue of walks, and where the direction of the walk is
_PUSHED, _PUSH_SHIFT = 32, 3  # the same for pushes
_BY_PUSH = 64  # whether the shortest way to it ends with the push
_CLOSED = 128  # whether the shortest way to it is known

# No reference counting: it costs more than the search does, and kernels neither allocate nor keep anything.
_OPTIONS: Any = {"cache": True, "nogil": True, "error_model": "numpy", "_nrt": False}
_kernel: Any = njit(**_OPTIONS)


class Board(NamedTuple):
    """The cells that are no walls, numbered 0..F-1 row by row; F stands for any wall."""

    neighbours: NDArray[np.int64]  # [F + 1, 4], the cell in each direction, in the order of the actions
    word: NDArray[np.int64]  # [F], in a set of cells, the word that has a cell's bit
    bit: NDArray[np.int64]  # [F]
    hashes: NDArray[np.int64]  # [F], non-negative
    is_target: NDArray[np.bool_]  # [F]
    inside: NDArray[np.bool_]  # [height * width], which cells of the level these are


class Sets(NamedTuple):
    """Sets of box cells, numbered in the order in which they were found."""

    words: NDArray[np.int64]  # [n, W]
    keys: NDArray[np.int64]  # [n], exclusive or of the hashes of the cells
    left: NDArray[np.int64]  # [n], pushes to the goal, at least; 0 exactly at the goal
    moved: NDArray[np.int64]  # [n], where the box is that was moved last on the way from the known sets; -1 in these
    table: NDArray[np.int64]  # [a power of two above 2 n], numbers by key, open addressing; -1 where empty
    sought: NDArray[np.int64]  # [W], a set that is looked for


@_kernel
def _is_free(board, sets, number, cell):  # type: ignore[no-untyped-def]
    """Tells whether `cell` is neither a wall nor in set `number`."""
    return cell < len(board.word) and sets.words[number, board.word[cell]] & board.bit[cell] == 0


@_kernel
def _seek_moved(board, sets, number, origin, cell):  # type: ignore[no-untyped-def]
    """Makes set `number`, with a box moved from `origin` to `cell`, the sought one; returns its key. Mutates: sets."""
    for word in range(len(sets.sought)):
        sets.sought[word] = sets.words[number, word]
    sets.sought[board.word[origin]] ^= board.bit[origin]
    sets.sought[board.word[cell]] ^= board.bit[cell]
    return sets.keys[number] ^ board.hashes[origin] ^ board.hashes[cell]


@_kernel
def _find(sets, key):  # type: ignore[no-untyped-def]
    """Returns the number of the sought set, or -1, and its slot of the table, or the one where it would be."""
    slot = key & (len(sets.table) - 1)
    while sets.table[slot] >= 0:
        number = sets.table[slot]
        same = sets.keys[number] == key
        for word in range(len(sets.sought)):
            same &= sets.words[number, word] == sets.sought[word]
        if same:
            return number, slot
        slot = (slot + 1) & (len(sets.table) - 1)
    return -1, slot


@_kernel
def _add(sets, num_sets, key, left, moved):  # type: ignore[no-untyped-def]
    """Adds the sought set to `num_sets` others if it is new; returns how many there are then. Mutates: sets."""
    number, slot = _find(sets, key)
    if number >= 0:
        return num_sets
    sets.table[slot] = num_sets
    for word in range(len(sets.sought)):
        sets.words[num_sets, word] = sets.sought[word]
    sets.keys[num_sets], sets.left[num_sets], sets.moved[num_sets] = key, left, moved
    return num_sets + 1


@_kernel
def add_known(board, sets, distances, boxes):  # type: ignore[no-untyped-def]
    """Adds the sets of a known way, bool [n, F], as the first; returns how many there are. Mutates: sets."""
    num_sets = 0
    for position in range(len(boxes)):
        key, left = 0, 0
        sets.sought[:] = 0
        for cell in range(len(board.word)):
            if boxes[position, cell]:
                sets.sought[board.word[cell]] |= board.bit[cell]
                key ^= board.hashes[cell]
                left += distances[cell]
        num_sets = _add(sets, num_sets, key, left, -1)
    return num_sets


@_kernel
def _pop(queue, ends):  # type: ignore[no-untyped-def]
    """Takes out the cheapest entry; returns the number of its queue, or -1 if there is none, its cost and item.

    Mutates: ends.
    """
    first, other = ends[0, 0], ends[1, 0]
    kind = 0
    if first == ends[0, 1] or (other < ends[1, 1] and queue[1, other, 0] < queue[0, first, 0]):
        kind, first = 1, other
    if first == ends[kind, 1]:
        return -1, 0, 0
    ends[kind, 0] += 1
    return kind, queue[kind, first, 0], queue[kind, first, 1]


@_kernel
def _append(queue, ends, kind, cost, item):  # type: ignore[no-untyped-def]
    """Puts an entry at the end of queue number `kind`. Mutates: queue, ends."""
    queue[kind, ends[kind, 1], 0], queue[kind, ends[kind, 1], 1] = cost, item
    ends[kind, 1] += 1


@_kernel
def gather(board, sets, distances, queue, ends, num_sets, limit, pops):  # type: ignore[no-untyped-def]
    """Adds sets that differ from known ones by one box moved one cell, the nearest first.

    Shorter ways differ more often by one box moved far than by several boxes moved a little. So a move costs 1, but
    `OTHER_BOX` if it moves another box than the move before. Left out are moves that could be neither a push nor a
    pull, wherever the player is, and cells from which a box cannot get to the goal.

    Invariant: costs never decrease along a queue, as entries are taken by increasing cost and each queue has its own
    fixed amount by which new entries cost more. So the cheaper one of the two first entries is the cheapest of all.

    Args:
      board: Board.
      sets: Sets, with room for all neighbours of a set beyond `limit`.
      distances: see `push_distances`.
      queue: sets to be looked at, int64 [2, size, 2]: found by the same box, by another one. With room for new ones.
      ends: of the queues, int64 [2, 2].
      num_sets: number of sets so far.
      limit: number of sets to stop at.
      pops: number of sets to look at, at most.

    Mutates: sets, queue, ends.

    Returns:
      The number of sets, at least `limit` unless both queues or the `pops` are used up.
    """
    for _ in range(pops):
        if num_sets >= limit:
            break
        kind, cost, number = _pop(queue, ends)
        if kind < 0:
            break
        for origin in range(len(board.word)):
            if _is_free(board, sets, number, origin):
                continue
            is_other = sets.moved[number] >= 0 and sets.moved[number] != origin
            for direction in range(4):
                cell = board.neighbours[origin, direction]
                if not _is_free(board, sets, number, cell) or distances[cell] == FAR:
                    continue
                behind, ahead = board.neighbours[origin, direction ^ 2], board.neighbours[cell, direction]
                if _is_free(board, sets, number, behind) or _is_free(board, sets, number, ahead):
                    key = _seek_moved(board, sets, number, origin, cell)
                    left = sets.left[number] - distances[origin] + distances[cell]
                    before, num_sets = num_sets, _add(sets, num_sets, key, left, cell)
                    if num_sets > before:
                        _append(queue, ends, int(is_other), cost + (OTHER_BOX if is_other else 1), before)
    return num_sets


@_kernel
def search(board, sets, marks, queue, ends, goal_player, walk_cost, bound, pops):  # type: ignore[no-untyped-def]
    """Dijkstra's algorithm over states, which are a set and the player's cell: number of the set * F + cell.

    Steps have only two costs, so two queues do instead of a heap, see `gather`. Invariant: of all entries that a state
    could get in one queue, the first is the cheapest; so it gets no other.

    Args:
      board: Board.
      sets: Sets; pushes that lead to others are left out.
      marks: of each state, uint8 [number of sets, F].
      queue: states to be looked at, int64 [2, size, 2]: reached by a walk, by a push. With room for 4 per pop.
      ends: of the queues, int64 [2, 2].
      goal_player: the player's cell at the goal, or -1 for any.
      walk_cost: cost of a walk.
      bound: what the way has to cost less than. States that are on no such way are left out.
      pops: number of states to look at, at most.

    Mutates: marks, queue, ends; sets, the sought one.

    Returns:
      The state at the goal; NOTHING if there is no way to it; MORE if the `pops` are used up.
    """
    num_cells = len(board.word)
    for _ in range(pops):
        kind, cost, state = _pop(queue, ends)
        if kind < 0:
            return NOTHING
        number, player = state // num_cells, state % num_cells
        if marks[number, player] & _CLOSED:
            continue
        marks[number, player] |= _CLOSED | (_BY_PUSH if kind == 1 else 0)
        if sets.left[number] == 0 and (goal_player < 0 or player == goal_player):
            return state
        for direction in range(4):
            cell = board.neighbours[player, direction]
            if _is_free(board, sets, number, cell):
                least = cost + walk_cost + sets.left[number] * PUSH_COST
                if least < bound and not marks[number, cell] & (_CLOSED | _WALKED):
                    marks[number, cell] |= _WALKED | direction << _WALK_SHIFT
                    _append(queue, ends, 0, cost + walk_cost, number * num_cells + cell)
                continue
            ahead = board.neighbours[cell, direction]  # beyond a wall, a wall
            if not _is_free(board, sets, number, ahead):
                continue
            after, _ = _find(sets, _seek_moved(board, sets, number, cell, ahead))
            if after < 0 or marks[after, cell] & (_CLOSED | _PUSHED):
                continue
            if cost + PUSH_COST + sets.left[after] * PUSH_COST < bound:
                marks[after, cell] |= _PUSHED | direction << _PUSH_SHIFT
                _append(queue, ends, 1, cost + PUSH_COST, after * num_cells + cell)
    return MORE


@_kernel
def step_back(board, sets, marks, state):  # type: ignore[no-untyped-def]
    """Returns the last step of the shortest way to a closed state, and the state before, which is closed too.

    The step is its direction, plus 4 for a push. Mutates: sets, the sought one.
    """
    num_cells = len(board.word)
    number, player = state // num_cells, state % num_cells
    mark = np.int64(marks[number, player])
    is_push = mark & _BY_PUSH != 0
    direction = mark >> (_PUSH_SHIFT if is_push else _WALK_SHIFT) & 3
    if is_push:
        box = board.neighbours[player, direction]
        number, _ = _find(sets, _seek_moved(board, sets, number, box, player))
    return direction + (4 if is_push else 0), number * num_cells + board.neighbours[player, direction ^ 2]
