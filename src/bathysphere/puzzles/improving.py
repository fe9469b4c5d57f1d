"""Shorter solutions: the shortest way through all positions that are much like those of a known solution.

A position is a set of box cells and the player's cell. Around the sets of the solution more and more sets are gathered
that differ from them by a few boxes moved a few cells. Dijkstra's algorithm finds the shortest solution that passes
through these sets only, and the next search starts from that one. Sokoban players call this a vicinity search. Once no
set is left to gather, the solution is the shortest there is.
"""

from __future__ import annotations

import math
import time
from typing import Any, Literal, NamedTuple

import numpy as np
from numba import njit
from numpy.typing import NDArray

from bathysphere.domains.sokoban import rules
from bathysphere.domains.sokoban.levels import Level, checked_solution, replay_moves, solves
from bathysphere.errors import BathysphereError

_LETTERS = "".join(name[0] for name in rules.ACTION_NAMES)
_BOXES = (rules.BOX, rules.BOX_ON_TARGET)
_PLAYERS = (rules.PLAYER, rules.PLAYER_ON_TARGET)
_TARGETS = (rules.TARGET, rules.BOX_ON_TARGET, rules.PLAYER_ON_TARGET)

# A cost is one number: what counts first in its upper half, what breaks ties in the lower one. A push is also a move,
# so it costs one of each; a walk, which is a move without a push, costs one of what counts moves.
_PUSH_COST = (1 << 32) + 1
_WALK_COSTS = {"moves": 1 << 32, "pushes": 1}

_MEMORY = 400 << 20  # bytes that a search may take
_BYTES_PER_SET, _BYTES_PER_STATE = 160, 4  # generous, entries in queues included
_FIRST_ROOM = 1000  # sets gathered for the first search, besides those of the solution
_SHORTEST = 16  # moves in a window; shorter ones are not worth the time
_SLICE = 1 << 15  # steps of a kernel between two looks at the clock: some milliseconds
_OTHER_BOX = 3  # how far a move by one cell leads, if it moves another box than the move before; else 1

_FAR = 1 << 20  # pushes to the goal from where no push leads to it
_BITS = 63  # cells per word of a set: words stay non-negative int64, compiled or not
_MORE, _NOTHING = -1, -2  # what `_search` answers instead of a state

# What is known of a state, in one byte; see `_search`. Directions take two bits each.
_WALKED, _WALK_SHIFT = 4, 0  # whether it was put into the queue of walks, and where the direction of the walk is
_PUSHED, _PUSH_SHIFT = 32, 3  # the same for pushes
_BY_PUSH = 64  # whether the shortest way to it ends with the push
_CLOSED = 128  # whether the shortest way to it is known

# No reference counting: it costs more than the search does, and kernels neither allocate nor keep anything.
_OPTIONS: Any = {"cache": True, "nogil": True, "error_model": "numpy", "_nrt": False}
_kernel: Any = njit(**_OPTIONS)


class _Board(NamedTuple):
    """The cells that are no walls, numbered 0..F-1 row by row; F stands for any wall."""

    neighbours: NDArray[np.int64]  # [F + 1, 4], the cell in each direction, in the order of the actions
    word: NDArray[np.int64]  # [F], in a set of cells, the word that has a cell's bit
    bit: NDArray[np.int64]  # [F]
    hashes: NDArray[np.int64]  # [F], non-negative
    is_target: NDArray[np.bool_]  # [F]
    inside: NDArray[np.bool_]  # [height * width], which cells of the level these are


class _Way(NamedTuple):
    """A known way to a goal: a solution or a part of one."""

    boxes: NDArray[np.bool_]  # [n, F], in each position from the start to the goal
    players: NDArray[np.int64]  # [n]
    goal: NDArray[np.bool_]  # [F], where boxes are to be
    goal_player: int  # where the player is to be, or -1 for anywhere
    cost: int


class _Sets(NamedTuple):
    """Sets of box cells, numbered in the order in which they were found."""

    words: NDArray[np.int64]  # [n, W]
    keys: NDArray[np.int64]  # [n], exclusive or of the hashes of the cells
    left: NDArray[np.int64]  # [n], pushes to the goal, at least; 0 exactly at the goal
    moved: NDArray[np.int64]  # [n], where the box is that was moved last on the way from the known sets; -1 in these
    table: NDArray[np.int64]  # [a power of two above 2 n], numbers by key, open addressing; -1 where empty
    sought: NDArray[np.int64]  # [W], a set that is looked for


def improve(level: Level, solution: str, seconds: float, count: Literal["moves", "pushes"] = "moves") -> str:
    """Returns a solution that is at least as good as the given one.

    It stops when it finds no better one any more. If that is before the time is over, the same arguments give the same
    solution.

    Args:
      level: any level.
      solution: moves that solve it, letters of `lurd` in either case.
      seconds: to spend at most, from 0. Needless walks and detours are left out in any case.
      count: what is to be few: moves, and pushes among equals; or pushes, and moves among equals.

    Returns:
      The moves, as `Level.solution` has them.
    """
    if count not in _WALK_COSTS:
        raise BathysphereError(f"count must be 'moves' or 'pushes'; got {count!r}.")
    if not seconds >= 0:
        raise BathysphereError(f"seconds must be a number from 0; got {seconds!r}.")
    if not solves(level, solution):
        raise BathysphereError(
            f"The {len(solution)} moves do not solve level '{level.title}'. Give a solution that is to be improved."
        )
    best = _tidied(level, solution)
    if not best:
        return best
    board, walk_cost = _board(level), _WALK_COSTS[count]
    # With the solution's own sets only, this is quick. It also compiles everything before the clock starts.
    best, _ = _sweep(level, board, best, 1, 0, walk_cost, math.inf)
    deadline = time.perf_counter() + seconds
    # First the whole solution with more and more sets until they fill the memory, then shorter and shorter windows.
    most = _MEMORY // (_BYTES_PER_SET + _BYTES_PER_STATE * len(board.word))
    room, num_windows = min(_FIRST_ROOM, most), 1
    while num_windows == 1 or len(best) >= num_windows * _SHORTEST:
        better, is_shortest = _sweep(level, board, best, num_windows, room, walk_cost, deadline)
        if is_shortest or time.perf_counter() >= deadline:
            return better
        if better != best:
            best, num_windows = better, 1
        elif room < most:
            room = min(2 * room, most)
        else:
            num_windows *= 2
    return best


def _sweep(
    level: Level, board: _Board, solution: str, num_windows: int, room: int, walk_cost: int, deadline: float
) -> tuple[str, bool]:
    """Looks for a shorter way in each window of a solution.

    Args:
      level: the level.
      board: its cells.
      solution: without detours.
      num_windows: how many windows, side by side, are as long as the solution. They overlap by half.
      room: sets to gather for each window, besides its own.
      walk_cost: cost of a walk.
      deadline: when to stop, on the clock `time.perf_counter`.

    Returns:
      The solution, shorter where a shorter way was found, and whether it is the shortest there is.
    """
    first, last, is_complete = 0, 0, False
    while last < len(solution) and time.perf_counter() < deadline:
        last = min(first + -(-len(solution) // num_windows), len(solution))
        found, is_complete = _shorter_way(
            board, _way(level, board, solution, first, last, walk_cost), room, walk_cost, deadline
        )
        if found is not None:
            solution = _tidied(level, solution[:first] + found + solution[last:])
            last = min(first + len(found), len(solution))
        first = (first + last + 1) // 2
    return solution, is_complete and num_windows == 1


def _shorter_way(board: _Board, way: _Way, room: int, walk_cost: int, deadline: float) -> tuple[str | None, bool]:
    """Looks for a way that costs less than a known one. Arguments as those of `_sweep`.

    Returns:
      The shortest way through the gathered sets, as letters, or None if the known one is as short or time is over; and
      whether the shorter of both is the shortest there is, since no set was left out.
    """
    sets, is_complete = _vicinity(board, way, room, deadline)
    marks = np.zeros((len(sets.keys), len(board.word)), np.uint8)
    start = int(way.players[0])  # in set 0, as the first position was added first
    queue, ends = np.array([[[0, start]], [[0, 0]]]), np.array([[0, 1], [0, 0]])
    state = _MORE
    while state == _MORE:
        if time.perf_counter() >= deadline:
            return None, False
        queue = _with_space(queue, ends, 4 * _SLICE)
        state = _search(board, sets, marks, queue, ends, way.goal_player, walk_cost, way.cost, _SLICE)
    if state == _NOTHING:
        return None, is_complete
    letters = ""
    while state != start:
        step, state = _step_back(board, sets, marks, state)
        letters += (_LETTERS + _LETTERS.upper())[step]
    return letters[::-1], is_complete


def _vicinity(board: _Board, way: _Way, room: int, deadline: float) -> tuple[_Sets, bool]:
    """Gathers the sets of a known way and `room` more around it; returns them, and whether that is all there are."""
    distances = _push_distances(board.neighbours, np.flatnonzero(way.goal))
    fan = 4 * int(way.boxes[0].sum())  # sets that differ from a set by one box and one cell, at most
    capacity, num_words = len(way.boxes) + room + fan, -(-len(board.word) // _BITS)
    sets = _Sets(
        words=np.empty((capacity, num_words), np.int64),
        keys=np.empty(capacity, np.int64),
        left=np.empty(capacity, np.int64),
        moved=np.empty(capacity, np.int64),
        table=np.full(1 << (2 * capacity).bit_length(), -1),
        sought=np.empty(num_words, np.int64),
    )
    num_sets = _add_known(board, sets, distances, way.boxes)
    limit, pops = num_sets + room, -(-_SLICE // fan)
    queue, ends = np.zeros((2, num_sets, 2), np.int64), np.array([[0, num_sets], [0, 0]])
    queue[0, :, 1] = np.arange(num_sets)
    while True:
        queue = _with_space(queue, ends, pops * fan)
        num_sets = _gather(board, sets, distances, queue, ends, num_sets, limit, pops)
        is_complete = bool((ends[:, 0] == ends[:, 1]).all())
        if is_complete or num_sets >= limit or time.perf_counter() >= deadline:
            words, keys, left, moved = (rows[:num_sets] for rows in sets[:4])
            return _Sets(words, keys, left, moved, sets.table, sets.sought), is_complete


def _tidied(level: Level, solution: str) -> str:
    """Returns a solution without detours, moves that change nothing and moves after its end, with proper capitals."""
    tidied = checked_solution(level, [_LETTERS.index(letter) for letter in solution.lower()])
    assert tidied is not None, "what is found solves the level"
    return tidied


def _board(level: Level) -> _Board:
    """Numbers the cells of a level."""
    inside = np.pad(level.grid != rules.WALL, 1)
    rows, columns = np.nonzero(inside)
    numbers = np.full(inside.shape, len(rows))
    numbers[inside] = np.arange(len(rows))
    neighbours = np.full((len(rows) + 1, 4), len(rows))
    for action, (row_step, column_step) in enumerate(zip(rules.ROW_STEPS, rules.COLUMN_STEPS, strict=True)):
        neighbours[:-1, action] = numbers[rows + row_step, columns + column_step]
    word, place = np.divmod(np.arange(len(rows)), _BITS)
    is_inside = inside[1:-1, 1:-1].ravel()
    return _Board(
        neighbours,
        word,
        np.left_shift(1, place),
        np.random.default_rng(0).integers(0, 1 << 62, len(rows)),
        np.isin(level.grid, _TARGETS).ravel()[is_inside],
        is_inside,
    )


def _way(level: Level, board: _Board, solution: str, first: int, last: int, walk_cost: int) -> _Way:
    """Returns the part of a solution from position `first` to position `last`."""
    history = replay_moves(level, solution[:last])[first:, board.inside]
    boxes = np.isin(history, _BOXES)
    players = np.isin(history, _PLAYERS).argmax(axis=1)
    pushes = sum(letter.isupper() for letter in solution[first:last])
    cost = pushes * _PUSH_COST + (last - first - pushes) * walk_cost
    if last == len(solution):
        return _Way(boxes, players, board.is_target, -1, cost)
    return _Way(boxes, players, boxes[-1], int(players[-1]), cost)


def _with_space(queue: NDArray[np.int64], ends: NDArray[np.int64], space: int) -> NDArray[np.int64]:
    """Returns two queues with room for `space` more entries in each. What was taken out makes room first.

    Args:
      queue: (cost, item) of each entry, int64 [2, size, 2].
      ends: of each queue, the indices of its first entry and after its last one, int64 [2, 2].
      space: number of entries.

    Mutates: ends.
    """
    if ends[:, 1].max() + space <= queue.shape[1]:
        return queue
    lengths = ends[:, 1] - ends[:, 0]
    larger = np.empty((2, 2 * int(lengths.max()) + space, 2), np.int64)
    for kind, (begin, end) in enumerate(ends):
        larger[kind, : end - begin] = queue[kind, begin:end]
    ends[:, 0], ends[:, 1] = 0, lengths
    return larger


def _push_distances(neighbours: NDArray[np.int64], goal: NDArray[np.int64]) -> NDArray[np.int64]:
    """Returns the pushes that a lone box needs at least from each cell to the nearest one of `goal`. Int64 [F + 1]."""
    wall = len(neighbours) - 1
    distances = np.full(wall + 1, _FAR)
    reached, pushes = goal, 0
    while len(reached):
        distances[reached] = pushes
        origins = neighbours[reached]
        # To push a box off its origin the player stands beyond it. Beyond a wall there are walls.
        is_new = (neighbours[origins, np.arange(4)] != wall) & (distances[origins] == _FAR)
        reached, pushes = np.unique(origins[is_new]), pushes + 1
    return distances


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
def _add_known(board, sets, distances, boxes):  # type: ignore[no-untyped-def]
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
def _gather(board, sets, distances, queue, ends, num_sets, limit, pops):  # type: ignore[no-untyped-def]
    """Adds sets that differ from known ones by one box moved one cell, the nearest first.

    Shorter ways differ more often by one box moved far than by several boxes moved a little. So a move costs 1, but
    `_OTHER_BOX` if it moves another box than the move before. Left out are moves that could be neither a push nor a
    pull, wherever the player is, and cells from which a box cannot get to the goal.

    Invariant: costs never decrease along a queue, as entries are taken by increasing cost and each queue has its own
    fixed amount by which new entries cost more. So the cheaper one of the two first entries is the cheapest of all.

    Args:
      board: _Board.
      sets: _Sets, with room for all neighbours of a set beyond `limit`.
      distances: see `_push_distances`.
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
                if not _is_free(board, sets, number, cell) or distances[cell] == _FAR:
                    continue
                behind, ahead = board.neighbours[origin, direction ^ 2], board.neighbours[cell, direction]
                if _is_free(board, sets, number, behind) or _is_free(board, sets, number, ahead):
                    key = _seek_moved(board, sets, number, origin, cell)
                    left = sets.left[number] - distances[origin] + distances[cell]
                    before, num_sets = num_sets, _add(sets, num_sets, key, left, cell)
                    if num_sets > before:
                        _append(queue, ends, int(is_other), cost + (_OTHER_BOX if is_other else 1), before)
    return num_sets


@_kernel
def _search(board, sets, marks, queue, ends, goal_player, walk_cost, bound, pops):  # type: ignore[no-untyped-def]
    """Dijkstra's algorithm over states, which are a set and the player's cell: number of the set * F + cell.

    Steps have only two costs, so two queues do instead of a heap, see `_gather`. Invariant: of all entries that a state
    could get in one queue, the first is the cheapest; so it gets no other.

    Args:
      board: _Board.
      sets: _Sets; pushes that lead to others are left out.
      marks: of each state, uint8 [number of sets, F].
      queue: states to be looked at, int64 [2, size, 2]: reached by a walk, by a push. With room for 4 per pop.
      ends: of the queues, int64 [2, 2].
      goal_player: the player's cell at the goal, or -1 for any.
      walk_cost: cost of a walk.
      bound: what the way has to cost less than. States that are on no such way are left out.
      pops: number of states to look at, at most.

    Mutates: marks, queue, ends; sets, the sought one.

    Returns:
      The state at the goal; _NOTHING if there is no way to it; _MORE if the `pops` are used up.
    """
    num_cells = len(board.word)
    for _ in range(pops):
        kind, cost, state = _pop(queue, ends)
        if kind < 0:
            return _NOTHING
        number, player = state // num_cells, state % num_cells
        if marks[number, player] & _CLOSED:
            continue
        marks[number, player] |= _CLOSED | (_BY_PUSH if kind == 1 else 0)
        if sets.left[number] == 0 and (goal_player < 0 or player == goal_player):
            return state
        for direction in range(4):
            cell = board.neighbours[player, direction]
            if _is_free(board, sets, number, cell):
                least = cost + walk_cost + sets.left[number] * _PUSH_COST
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
            if cost + _PUSH_COST + sets.left[after] * _PUSH_COST < bound:
                marks[after, cell] |= _PUSHED | direction << _PUSH_SHIFT
                _append(queue, ends, 1, cost + _PUSH_COST, after * num_cells + cell)
    return _MORE


@_kernel
def _step_back(board, sets, marks, state):  # type: ignore[no-untyped-def]
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
