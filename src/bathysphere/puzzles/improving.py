"""Shorter solutions: the shortest way through all positions that are much like those of a known solution.

A position is a set of box cells and the player's cell. Around the sets of the solution more and more sets are gathered
that differ from them by a few boxes moved a few cells. Dijkstra's algorithm finds the shortest solution that passes
through these sets only, and the next search starts from that one. Sokoban players call this a vicinity search. Once no
set is left to gather, the solution is the shortest there is.
"""

from __future__ import annotations

import math
import time
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from bathysphere.domains.sokoban import rules
from bathysphere.domains.sokoban.levels import Level, checked_solution, replay_moves, solves
from bathysphere.errors import BathysphereError
from bathysphere.puzzles.cells import BITS, push_distances
from bathysphere.puzzles.improving_kernels import (
    MORE,
    NOTHING,
    PUSH_COST,
    Board,
    Sets,
    add_known,
    gather,
    search,
    step_back,
)

_LETTERS = "".join(name[0] for name in rules.ACTION_NAMES)
_BOXES = (rules.BOX, rules.BOX_ON_TARGET)
_PLAYERS = (rules.PLAYER, rules.PLAYER_ON_TARGET)
_TARGETS = (rules.TARGET, rules.BOX_ON_TARGET, rules.PLAYER_ON_TARGET)

_WALK_COSTS = {"moves": 1 << 32, "pushes": 1}

_MEMORY = 400 << 20  # bytes that a search may take
_BYTES_PER_SET, _BYTES_PER_STATE = 160, 4  # generous, entries in queues included
_FIRST_ROOM = 1000  # sets gathered for the first search, besides those of the solution
_SHORTEST = 16  # moves in a window; shorter ones are not worth the time
_SLICE = 1 << 15  # steps of a kernel between two looks at the clock: some milliseconds


class _Way(NamedTuple):
    """A known way to a goal: a solution or a part of one."""

    boxes: NDArray[np.bool_]  # [n, F], in each position from the start to the goal
    players: NDArray[np.int64]  # [n]
    goal: NDArray[np.bool_]  # [F], where boxes are to be
    goal_player: int  # where the player is to be, or -1 for anywhere
    cost: int


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
    level: Level, board: Board, solution: str, num_windows: int, room: int, walk_cost: int, deadline: float
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


def _shorter_way(board: Board, way: _Way, room: int, walk_cost: int, deadline: float) -> tuple[str | None, bool]:
    """Looks for a way that costs less than a known one. Arguments as those of `_sweep`.

    Returns:
      The shortest way through the gathered sets, as letters, or None if the known one is as short or time is over; and
      whether the shorter of both is the shortest there is, since no set was left out.
    """
    sets, is_complete = _vicinity(board, way, room, deadline)
    marks = np.zeros((len(sets.keys), len(board.word)), np.uint8)
    start = int(way.players[0])  # in set 0, as the first position was added first
    queue, ends = np.array([[[0, start]], [[0, 0]]]), np.array([[0, 1], [0, 0]])
    state = MORE
    while state == MORE:
        if time.perf_counter() >= deadline:
            return None, False
        queue = _with_space(queue, ends, 4 * _SLICE)
        state = search(board, sets, marks, queue, ends, way.goal_player, walk_cost, way.cost, _SLICE)
    if state == NOTHING:
        return None, is_complete
    letters = ""
    while state != start:
        step, state = step_back(board, sets, marks, state)
        letters += (_LETTERS + _LETTERS.upper())[step]
    return letters[::-1], is_complete


def _vicinity(board: Board, way: _Way, room: int, deadline: float) -> tuple[Sets, bool]:
    """Gathers the sets of a known way and `room` more around it; returns them, and whether that is all there are."""
    distances = push_distances(board.neighbours, np.flatnonzero(way.goal))
    fan = 4 * int(way.boxes[0].sum())  # sets that differ from a set by one box and one cell, at most
    capacity, num_words = len(way.boxes) + room + fan, -(-len(board.word) // BITS)
    sets = Sets(
        words=np.empty((capacity, num_words), np.int64),
        keys=np.empty(capacity, np.int64),
        left=np.empty(capacity, np.int64),
        moved=np.empty(capacity, np.int64),
        table=np.full(1 << (2 * capacity).bit_length(), -1),
        sought=np.empty(num_words, np.int64),
    )
    num_sets = add_known(board, sets, distances, way.boxes)
    limit, pops = num_sets + room, -(-_SLICE // fan)
    queue, ends = np.zeros((2, num_sets, 2), np.int64), np.array([[0, num_sets], [0, 0]])
    queue[0, :, 1] = np.arange(num_sets)
    while True:
        queue = _with_space(queue, ends, pops * fan)
        num_sets = gather(board, sets, distances, queue, ends, num_sets, limit, pops)
        is_complete = bool((ends[:, 0] == ends[:, 1]).all())
        if is_complete or num_sets >= limit or time.perf_counter() >= deadline:
            words, keys, left, moved = (rows[:num_sets] for rows in sets[:4])
            return Sets(words, keys, left, moved, sets.table, sets.sought), is_complete


def _tidied(level: Level, solution: str) -> str:
    """Returns a solution without detours, moves that change nothing and moves after its end, with proper capitals."""
    tidied = checked_solution(level, [_LETTERS.index(letter) for letter in solution.lower()])
    assert tidied is not None, "what is found solves the level"
    return tidied


def _board(level: Level) -> Board:
    """Numbers the cells of a level."""
    inside = np.pad(level.grid != rules.WALL, 1)
    rows, columns = np.nonzero(inside)
    numbers = np.full(inside.shape, len(rows))
    numbers[inside] = np.arange(len(rows))
    neighbours = np.full((len(rows) + 1, 4), len(rows))
    for action, (row_step, column_step) in enumerate(zip(rules.ROW_STEPS, rules.COLUMN_STEPS, strict=True)):
        neighbours[:-1, action] = numbers[rows + row_step, columns + column_step]
    word, place = np.divmod(np.arange(len(rows)), BITS)
    is_inside = inside[1:-1, 1:-1].ravel()
    return Board(
        neighbours,
        word,
        np.left_shift(1, place),
        np.random.default_rng(0).integers(0, 1 << 62, len(rows)),
        np.isin(level.grid, _TARGETS).ravel()[is_inside],
        is_inside,
    )


def _way(level: Level, board: Board, solution: str, first: int, last: int, walk_cost: int) -> _Way:
    """Returns the part of a solution from position `first` to position `last`."""
    history = replay_moves(level, solution[:last])[first:, board.inside]
    boxes = np.isin(history, _BOXES)
    players = np.isin(history, _PLAYERS).argmax(axis=1)
    pushes = sum(letter.isupper() for letter in solution[first:last])
    cost = pushes * PUSH_COST + (last - first - pushes) * walk_cost
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
