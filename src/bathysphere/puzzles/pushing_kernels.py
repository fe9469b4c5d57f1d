"""The compiled inner loops of the search over pushes; see pushing.py.

Cells are numbered 0..F-1; F stands for any wall. A position is the set of the boxes' cells and the lowest cell that the
player can walk to: where in that room the player stands makes no difference to what can be pushed.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numba import njit
from numpy.typing import NDArray

from bathysphere.domains.sokoban.deadlocks import any_is_frozen
from bathysphere.puzzles.cells import BITS, FAR

MORE, SOLVED, EXHAUSTED = range(3)  # what `search` answers

_kernel: Any = njit(cache=True, nogil=True)


class Ground(NamedTuple):
    """What never changes on a board."""

    neighbours: NDArray[np.int64]  # [F + 1, 4], the cell in each direction, in the order of the actions
    ground: NDArray[np.uint8]  # [F + 1], WALL, FLOOR or TARGET
    reach: NDArray[np.int64]  # [F + 1], 0 where a box is lost
    distances: NDArray[np.int64]  # [F + 1, T], pushes that a lone box needs to each target, at least; FAR for never
    hashes: NDArray[np.int64]  # [F], non-negative


class Positions(NamedTuple):
    """Positions in the order in which they were found, and the open list: a stack for each priority."""

    words: NDArray[np.int64]  # [n, W], the set of boxes
    player: NDArray[np.int32]  # [n], the lowest cell that the player can walk to
    parent: NDArray[np.int32]  # [n], -1 for the start
    push: NDArray[np.int32]  # [n], 4 * the box's cell before the push that led here + its direction
    pushes: NDArray[np.int32]  # [n], from the start
    following: NDArray[np.int32]  # [n], the next one of the same stack; -1 for none
    table: NDArray[np.int32]  # [a power of two above 2 n], positions by hash, open addressing; -1 where empty
    tops: NDArray[np.int32]  # [priorities], the first position of each stack; -1 where empty
    counts: NDArray[np.int64]  # [4]: positions, expansions, lowest priority that may have a position, the solved one


class Scratch(NamedTuple):
    """Room to work in."""

    is_box: NDArray[np.bool_]  # [F + 1]
    is_fixed: NDArray[np.bool_]  # [F + 1], all False
    is_reached: NDArray[np.bool_]  # [F + 1], where the player of the position that is expanded can walk to
    is_seen: NDArray[np.bool_]  # [F + 1], of another walk
    queue: NDArray[np.int64]  # [F]
    boxes: NDArray[np.int64]  # [b]
    sought: NDArray[np.int64]  # [W]
    matching: NDArray[np.int64]  # [5, T + 1], see `least_pushes`


@_kernel
def least_pushes(boxes, distances, matching):  # type: ignore[no-untyped-def]
    """Returns how many pushes are needed at least if every box goes to a target of its own; FAR or more if none can.

    The Hungarian method: boxes are added one by one, each by the cheapest path of changes. Mutates: matching, whose
    rows are potentials of targets, the box of each target, the target before on the path, least slacks, and marks.
    """
    num_boxes, num_targets = len(boxes), distances.shape[1]
    potential, owner, before, slack, is_used = matching[0], matching[1], matching[2], matching[3], matching[4]
    row_potential = np.zeros(num_boxes + 1, np.int64)
    for j in range(num_targets + 1):
        potential[j] = 0
        owner[j] = 0
    for i in range(1, num_boxes + 1):
        owner[0] = i
        j0 = 0
        for j in range(num_targets + 1):
            slack[j] = 1 << 60
            is_used[j] = 0
        while True:
            is_used[j0] = 1
            i0, j1, delta = owner[j0], 0, np.int64(1 << 60)
            for j in range(1, num_targets + 1):
                if not is_used[j]:
                    current = distances[boxes[i0 - 1], j - 1] - row_potential[i0] - potential[j]
                    if current < slack[j]:
                        slack[j] = current
                        before[j] = j0
                    if slack[j] < delta:
                        delta = slack[j]
                        j1 = j
            for j in range(num_targets + 1):
                if is_used[j]:
                    row_potential[owner[j]] += delta
                    potential[j] -= delta
                else:
                    slack[j] -= delta
            j0 = j1
            if owner[j0] == 0:
                break
        while j0:
            owner[j0] = owner[before[j0]]
            j0 = before[j0]
    total = 0
    for j in range(1, num_targets + 1):
        if owner[j]:
            total += distances[boxes[owner[j] - 1], j - 1]
    return total


@_kernel
def walk(neighbours, is_box, player, is_seen, queue):  # type: ignore[no-untyped-def]
    """Finds where a player can walk to; returns the lowest such cell. Mutates: is_seen, every entry; queue."""
    is_seen[:] = False
    is_seen[player] = True
    queue[0] = player
    head, tail, lowest, wall = 0, 1, player, len(neighbours) - 1
    while head < tail:
        cell = queue[head]
        head += 1
        for direction in range(4):
            there = neighbours[cell, direction]
            if there != wall and not is_box[there] and not is_seen[there]:
                is_seen[there] = True
                queue[tail] = there
                tail += 1
                lowest = min(lowest, there)
    return lowest


@_kernel
def _place_boxes(words, number, is_box, boxes):  # type: ignore[no-untyped-def]
    """Reads the boxes of a position. Mutates: is_box, every entry; boxes."""
    is_box[:] = False
    count = 0
    for word in range(words.shape[1]):
        left = words[number, word]
        cell = word * BITS
        while left:
            if left & 1:
                is_box[cell] = True
                boxes[count] = cell
                count += 1
            left >>= 1
            cell += 1


@_kernel
def add(ground, positions, scratch, player, parent, push, weight):  # type: ignore[no-untyped-def]
    """Adds the position of `scratch.is_box` and `scratch.boxes` unless it is known or lost.

    Invariant: there is room for it. Mutates: positions; scratch.

    Returns:
      Whether all boxes are on targets.
    """
    words, table, counts = positions.words, positions.table, positions.counts
    scratch.sought[:] = 0
    key = np.int64(0)
    for box in scratch.boxes:
        scratch.sought[box // BITS] |= np.int64(1) << (box % BITS)
        key ^= ground.hashes[box]
    lowest = walk(ground.neighbours, scratch.is_box, player, scratch.is_seen, scratch.queue)
    mask = len(table) - 1
    slot = (key ^ (ground.hashes[lowest] >> 7)) & mask
    while table[slot] >= 0:
        number = table[slot]
        same = positions.player[number] == lowest
        for word in range(words.shape[1]):
            same &= words[number, word] == scratch.sought[word]
        if same:
            return False
        slot = (slot + 1) & mask
    if any_is_frozen(scratch.boxes, ground.ground, ground.reach, ground.neighbours, scratch.is_fixed):
        return False
    left = least_pushes(scratch.boxes, ground.distances, scratch.matching)
    if left >= FAR:
        return False
    number = counts[0]
    counts[0] += 1
    table[slot] = number
    words[number] = scratch.sought
    positions.player[number] = lowest
    positions.parent[number] = parent
    positions.push[number] = push
    made = 0 if parent < 0 else positions.pushes[parent] + 1
    positions.pushes[number] = made
    priority = min(made + weight * left, len(positions.tops) - 1)
    positions.following[number] = positions.tops[priority]
    positions.tops[priority] = number
    counts[2] = min(counts[2], priority)
    if left == 0:
        counts[3] = number
    return left == 0


@_kernel
def enter_all(ground, positions):  # type: ignore[no-untyped-def]
    """Enters every position into an empty table. Mutates: positions.table."""
    table, words = positions.table, positions.words
    mask = len(table) - 1
    for number in range(positions.counts[0]):
        key = np.int64(0)
        for word in range(words.shape[1]):
            left = words[number, word]
            cell = word * BITS
            while left:
                if left & 1:
                    key ^= ground.hashes[cell]
                left >>= 1
                cell += 1
        slot = (key ^ (ground.hashes[positions.player[number]] >> 7)) & mask
        while table[slot] >= 0:
            slot = (slot + 1) & mask
        table[slot] = number


@_kernel
def search(ground, positions, scratch, weight, num_expansions):  # type: ignore[no-untyped-def]
    """Expands the first positions of the open list: lowest pushes made + weight * pushes to go, newest first.

    Invariant: there is room for the positions that `num_expansions` expansions can make. Mutates: positions, scratch.

    Returns:
      MORE, SOLVED or EXHAUSTED.
    """
    neighbours, counts, tops = ground.neighbours, positions.counts, positions.tops
    wall = len(neighbours) - 1
    is_box, boxes = scratch.is_box, scratch.boxes
    for _ in range(num_expansions):
        while counts[2] < len(tops) and tops[counts[2]] < 0:
            counts[2] += 1
        if counts[2] == len(tops):
            return EXHAUSTED
        number = tops[counts[2]]
        tops[counts[2]] = positions.following[number]
        counts[1] += 1
        _place_boxes(positions.words, number, is_box, boxes)
        walk(neighbours, is_box, positions.player[number], scratch.is_reached, scratch.queue)
        for k in range(len(boxes)):
            box = boxes[k]
            for direction in range(4):
                there = neighbours[box, direction]
                if there == wall or is_box[there] or ground.reach[there] == 0:
                    continue
                if not scratch.is_reached[neighbours[box, direction ^ 2]]:
                    continue
                is_box[box] = False
                is_box[there] = True
                boxes[k] = there
                is_solved = add(ground, positions, scratch, box, number, 4 * box + direction, weight)
                is_box[box] = True
                is_box[there] = False
                boxes[k] = box
                if is_solved:
                    return SOLVED
    return MORE
