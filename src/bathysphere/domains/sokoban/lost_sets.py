"""Positions that are lost because two or three of the boxes are, even if these were alone on the board.

For every board all sets of a few boxes that can be solved are found once, by playing backwards from the targets,
together with where the player may be. A position is lost if some of its boxes, and its player, are not among them: the
other boxes only stand in the way. Sets of all boxes are not looked at: that would be to solve the board.
"""

from __future__ import annotations

import threading
from functools import lru_cache
from itertools import combinations
from math import comb
from typing import Any

import numpy as np
from numba import njit
from numpy.typing import NDArray

from bathysphere.domains.base import States
from bathysphere.domains.sokoban.deadlocks import GROUND, neighbours_of
from bathysphere.domains.sokoban.rules import BOX, BOX_ON_TARGET, PLAYER, PLAYER_ON_TARGET, TARGET, WALL

MOST_BOXES = 3  # of a set
MOST_CELLS = 62  # of a board that are no walls: the player's cells are the bits of a word; larger boards have no sets
_MOST_WORDS = 1 << 24  # of the sets of all boards in memory; then they are forgotten
_CHOOSE = np.array([[comb(n, k) for k in range(MOST_BOXES + 1)] for n in range(MOST_CELLS + 1)])

_kernel: Any = njit(cache=True, nogil=True)


class LostSets:
    """The solvable sets of the boards of one shape that were seen lately; can be asked by several threads."""

    def __init__(self, shape: tuple[int, int]) -> None:
        self._neighbours = neighbours_of(shape)
        self._lock = threading.Lock()
        self._forget()

    def any_lost(self, states: States) -> NDArray[np.bool_]:
        """Tells which of `states`, cell codes uint8 [n, S], are lost for a set of their boxes. Bool [n]."""
        grounds = np.ascontiguousarray(GROUND[states])
        is_lost = np.zeros(len(states), np.bool_)
        with self._lock:
            if self._num_words > _MOST_WORDS:
                self._forget()
            boards = np.array([self._board(ground.tobytes()) for ground in grounds], np.int64)
            _judge_all(states, boards, self._numbers, self._starts, self._words, _CHOOSE, is_lost)
        return is_lost

    def _forget(self) -> None:
        self._known: dict[bytes, int] = {}
        self._numbers = np.empty((0, len(self._neighbours) - 1), np.int8)
        self._starts = np.empty((0, MOST_BOXES + 1), np.int64)
        self._words, self._num_words = np.empty(1 << 16, np.int64), 0

    def _board(self, key: bytes) -> int:
        """Returns the number of a board, given its ground; -1 if it has no sets."""
        if key not in self._known:
            self._known[key] = self._add(np.frombuffer(key, np.uint8))
        return self._known[key]

    def _add(self, ground: NDArray[np.uint8]) -> int:
        cells = np.flatnonzero(ground != WALL)
        if len(cells) > MOST_CELLS:
            return -1
        numbers = np.full(len(ground) + 1, -1, np.int8)
        numbers[cells] = np.arange(len(cells))
        neighbours = numbers[self._neighbours[cells]].astype(np.int64)
        targets = numbers[np.flatnonzero(ground == TARGET)]
        starts = np.full(MOST_BOXES + 1, -1)
        for size in range(2, min(MOST_BOXES, len(targets) - 1) + 1):
            goals = np.array(list(combinations(targets.tolist(), size)), np.int64)
            words = self._take(comb(len(cells), size))
            room = (3 * size + 1) * len(words)  # a box divides a room into four at most
            if play_backwards(neighbours, goals, _CHOOSE, words, np.empty((room, size + 1), np.int64)):
                starts[size] = self._num_words - len(words)
        self._numbers = np.concatenate([self._numbers, numbers[None, :-1]])
        self._starts = np.concatenate([self._starts, starts[None]])
        return len(self._starts) - 1

    def _take(self, count: int) -> NDArray[np.int64]:
        """Returns `count` words more, zeros."""
        begin, self._num_words = self._num_words, self._num_words + count
        while self._num_words > len(self._words):
            self._words = np.concatenate([self._words, np.empty_like(self._words)])
        taken = self._words[begin : self._num_words]
        taken[:] = 0
        return taken


@lru_cache(maxsize=4)
def lost_sets(shape: tuple[int, int]) -> LostSets:
    """Returns what is known of boards of a shape, for this process."""
    return LostSets(shape)


@_kernel
def _rank(boxes, choose):  # type: ignore[no-untyped-def]
    """Numbers sets of cells, given in increasing order, from 0 without gaps."""
    rank = 0
    for k in range(len(boxes)):
        rank += choose[boxes[k], k + 1]
    return rank


@_kernel
def _room(neighbours, boxes, player, stack):  # type: ignore[no-untyped-def]
    """Returns where the player can walk to, as bits. Mutates: stack."""
    taken = np.int64(0)
    for box in boxes:
        taken |= np.int64(1) << box
    room = np.int64(1) << player
    stack[0] = player
    height = 1
    while height:
        height -= 1
        cell = stack[height]
        for direction in range(4):
            there = neighbours[cell, direction]
            if there >= 0 and not (room | taken) >> there & 1:
                room |= np.int64(1) << there
                stack[height] = there
                height += 1
    return room


@_kernel
def play_backwards(neighbours, goals, choose, words, queue):  # type: ignore[no-untyped-def]
    """Finds all sets of k boxes, and rooms of the player, from which the boxes can be pushed to targets.

    Invariant: what is in `words` has been queued, room by room; a room is queued once.

    Args:
      neighbours: the cell in each direction, -1 for a wall, int64 [F, 4].
      goals: the sets of k targets, each in increasing order, int64 [g, k].
      choose: binomial coefficients.
      words: of every set the cells of the player, as bits; zeros, int64 [sets].
      queue: room to work in, int64 [n, k + 1].

    Mutates: words, queue.

    Returns:
      Whether the queue sufficed; otherwise the words are incomplete.
    """
    num_cells, size = len(neighbours), goals.shape[1]
    stack, moved = np.empty(num_cells, np.int64), np.empty(size, np.int64)
    head = tail = 0
    for g in range(len(goals)):
        rank = _rank(goals[g], choose)
        for player in range(num_cells):
            is_free = not words[rank] >> player & 1
            for box in goals[g]:
                is_free &= box != player
            if is_free:
                if tail == len(queue):
                    return False
                words[rank] |= _room(neighbours, goals[g], player, stack)
                queue[tail, :size] = goals[g]
                queue[tail, size] = player
                tail += 1
    while head < tail:
        boxes = queue[head, :size]
        room = _room(neighbours, boxes, queue[head, size], stack)
        head += 1
        for k in range(size):
            for direction in range(4):
                # The player beside the box steps away from it and pulls it along.
                there = neighbours[boxes[k], direction]
                if there < 0 or not room >> there & 1:
                    continue
                player = neighbours[there, direction]
                if player < 0 or not room >> player & 1:
                    continue
                moved[:] = boxes
                i = k
                while i > 0 and moved[i - 1] > there:
                    moved[i] = moved[i - 1]
                    i -= 1
                while i + 1 < size and moved[i + 1] < there:
                    moved[i] = moved[i + 1]
                    i += 1
                moved[i] = there
                rank = _rank(moved, choose)
                if not words[rank] >> player & 1:
                    if tail == len(queue):
                        return False
                    words[rank] |= _room(neighbours, moved, player, stack)
                    queue[tail, :size] = moved
                    queue[tail, size] = player
                    tail += 1
    return True


@_kernel
def _judge_all(states, boards, numbers, starts, words, choose, is_lost):  # type: ignore[no-untyped-def]
    """Tells for every state whether two or three of its boxes are lost alone. Mutates: is_lost [n]."""
    boxes = np.empty(states.shape[1], np.int64)
    for i in range(len(states)):
        if boards[i] < 0:
            continue
        number, start = numbers[boards[i]], starts[boards[i]]
        num_boxes, player = 0, -1
        for cell in range(states.shape[1]):
            code = states[i, cell]
            if code in (BOX, BOX_ON_TARGET):
                boxes[num_boxes] = number[cell]
                num_boxes += 1
            elif code in (PLAYER, PLAYER_ON_TARGET) and player < 0:
                player = number[cell]
        if player < 0:
            continue
        for c in range(num_boxes):
            for b in range(c):
                pair = choose[boxes[b], 1] + choose[boxes[c], 2]
                if num_boxes > 2 and start[2] >= 0 and not words[start[2] + pair] >> player & 1:
                    is_lost[i] = True
                if num_boxes > 3 and start[3] >= 0:
                    for d in range(c + 1, num_boxes):
                        if not words[start[3] + pair + choose[boxes[d], 3]] >> player & 1:
                            is_lost[i] = True
