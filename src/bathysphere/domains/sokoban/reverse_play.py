"""Reverse play: a depth-first search that drags the boxes of a solved room away from their targets."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numba import njit
from numpy.typing import NDArray

BITS = 63  # cells per word of a set of cells: words stay non-negative int64, compiled or not
_STEPS = ((-1, 0), (1, 0), (0, -1), (0, 1))  # up, down, left, right; the opposite of direction d is d ^ 1
_FORWARD = "durl"  # a reverse step up is undone by walking down, and so on
_FREE, _WALL = -1, -2  # what is in a cell, besides the number of a box
_LOWEST_BIT = np.array([0, *((mask & -mask).bit_length() - 1 for mask in range(1, 256))])


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
    cells = np.argwhere(room)
    index = np.full(room.shape, len(cells), np.int64)  # one cell more stands for all walls
    index[room] = np.arange(len(cells))
    neighbours = np.stack([index[cells[:, 0] + dy, cells[:, 1] + dx] for dy, dx in _STEPS], axis=1)
    distances = np.abs(cells[None] - targets[:, None]).sum(axis=2)
    # Hashes only spread positions over the table, which compares whole sets; any fixed numbers serve.
    hashes = np.random.default_rng(0).integers(2**62, size=len(cells))
    num_slots = 1 << (2 * min(max_states, math.comb(len(cells), len(targets)))).bit_length()
    score, num_states, boxes, place, directions, pulled = _search(
        neighbours,
        distances,
        index[targets[:, 0], targets[:, 1]],
        index[player],
        hashes,
        num_slots,
        max_depth,
        max_states,
    )
    moves = [_FORWARD[d].upper() if pull else _FORWARD[d] for d, pull in zip(directions, pulled, strict=True)]
    row, column = cells[place]
    return ReversePlay(int(score), int(num_states), cells[boxes], (int(row), int(column)), "".join(reversed(moves)))


@njit(cache=True, nogil=True)
def _slot(table, boxes, key):  # type: ignore[no-untyped-def]
    """Returns the row of `table` for the set `boxes`, taking an empty one if the set is new.

    Mutates: table, int64 [num_slots, 2 W]: the first W words of a new set's row.
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


@njit(cache=True, nogil=True)
def _open_actions(neighbours, here, contents, seen, word_of, bit_of):  # type: ignore[no-untyped-def]
    """Returns the actions worth trying at `here`, as bits 0 to 7: those whose cell is free, without known repeats.

    Bit d walks in direction d and drags the box behind, if any; bit 4 + d leaves a box behind where it is, and is
    not set if there is none. Invariant: what has been seen stays so, and boxes are where they are now whenever an
    action of this position is tried, so the answer holds until all of them are.

    Args:
      seen: int64 [W], the player's cells seen with these boxes.
      The others: as in `_search`.
    """
    free, pullable, unseen = 0, 0, 0
    for direction in range(4):
        there = neighbours[here, direction]
        free |= (contents[there] == _FREE) << direction
        pullable |= (contents[there] >= 0) << (direction ^ 1)
        unseen |= ((seen[word_of[there]] & bit_of[there]) == 0) << direction
    return (free & (pullable | unseen)) | ((free & pullable & unseen) << 4)


@njit(cache=True, nogil=True)
def _search(  # type: ignore[no-untyped-def]
    neighbours, distances, targets, start, hashes, num_slots, max_depth, max_states
):
    """The depth-first search of `play_backwards` with an explicit stack, over cells numbered 0..F-1.

    Visited positions live in an open-addressing table with one row per set of box cells (W words) beside the
    set of player cells seen with it (W words), so that walking costs one bit test and only pulling costs a
    lookup.

    Invariants: `contents` and `boxes` describe the position at the current depth; at most about half of the
    table is used, because it has twice as many rows as there can be sets; a set of boxes is never empty.

    Args:
      neighbours: int64 [F, 4], the cell in each direction or F for a wall.
      distances: int64 [b, F] of each cell from the target of each box.
      targets: int64 [b], where the boxes start.
      start: the player's cell.
      hashes: int64 [F], non-negative.
      num_slots: rows of the table, a power of two.
      max_depth, max_states: the limits.

    Returns:
      (score, number of visited positions, box cells int64 [b], player cell, directions int64 [L] and whether
      a box was pulled bool [L] of the path to the best position from the last solved one before it).
    """
    num_cells = neighbours.shape[0]
    num_boxes = targets.shape[0]
    num_words = (num_cells + BITS - 1) // BITS
    word_of = np.zeros(num_cells + 1, np.int64)
    bit_of = np.zeros(num_cells + 1, np.int64)
    for cell in range(num_cells):
        word_of[cell] = cell // BITS
        bit_of[cell] = np.int64(1) << np.int64(cell % BITS)

    table = np.zeros((num_slots, 2 * num_words), np.int64)
    contents = np.full(num_cells + 1, _FREE, np.int64)
    contents[num_cells] = _WALL
    is_target = np.zeros(num_cells, np.int64)
    boxes = np.zeros(num_words, np.int64)
    key = np.int64(0)
    for box in range(num_boxes):
        cell = targets[box]
        contents[cell] = box
        is_target[cell] = 1
        boxes[word_of[cell]] |= bit_of[cell]
        key ^= hashes[cell]

    # One entry per depth: the player, the table row, the actions left to try, how this position was reached
    # (direction, box pulled or -1), and what its score needs.
    players = np.empty(max_depth, np.int64)
    slots = np.empty(max_depth, np.int64)
    keys = np.empty(max_depth, np.int64)
    actions = np.empty(max_depth, np.int64)
    directions = np.empty(max_depth, np.int64)
    pulls = np.empty(max_depth, np.int64)
    changes = np.empty(max_depth, np.int64)
    total_distance = np.empty(max_depth, np.int64)
    covered = np.empty(max_depth, np.int64)

    best_score = np.int64(0)
    best_player = start
    best_boxes = targets.copy()
    best_length = 0
    best_directions = np.empty(max_depth, np.int64)
    best_pulled = np.empty(max_depth, np.bool_)

    players[0] = start
    slots[0] = _slot(table, boxes, key)
    keys[0] = key
    directions[0] = 0
    pulls[0] = -1
    changes[0] = 0
    total_distance[0] = 0
    covered[0] = num_boxes
    table[slots[0], num_words + word_of[start]] |= bit_of[start]
    num_states = 1
    deepest = max_depth - 2
    depth = 0
    actions[0] = 0
    if depth < deepest:
        actions[0] = _open_actions(neighbours, start, contents, table[slots[0], num_words:], word_of, bit_of)
    while depth >= 0 and num_states < max_states:
        left = actions[depth]
        if left == 0:
            if pulls[depth] >= 0:  # put the box back: it stands where the player was one step before
                previous = players[depth - 1]
                origin = neighbours[previous, directions[depth] ^ 1]
                contents[previous] = _FREE
                contents[origin] = pulls[depth]
                boxes[word_of[previous]] ^= bit_of[previous]
                boxes[word_of[origin]] ^= bit_of[origin]
            depth -= 1
            continue
        actions[depth] = left & (left - 1)
        action = _LOWEST_BIT[left]
        direction = action & 3
        here = players[depth]
        there = neighbours[here, direction]
        behind = neighbours[here, direction ^ 1]
        box = max(contents[behind], -1) if action < 4 else -1
        slot = slots[depth]
        key = keys[depth]
        if box >= 0:
            key ^= hashes[behind] ^ hashes[here]
            boxes[word_of[behind]] ^= bit_of[behind]
            boxes[word_of[here]] ^= bit_of[here]
            slot = _slot(table, boxes, key)
        seen = num_words + word_of[there]
        if table[slot, seen] & bit_of[there]:
            if box >= 0:
                boxes[word_of[behind]] ^= bit_of[behind]
                boxes[word_of[here]] ^= bit_of[here]
            continue
        table[slot, seen] |= bit_of[there]
        num_states += 1

        depth += 1
        players[depth] = there
        slots[depth] = slot
        keys[depth] = key
        directions[depth] = direction
        pulls[depth] = box
        changes[depth] = changes[depth - 1] + (box != pulls[depth - 1])
        total_distance[depth] = total_distance[depth - 1]
        covered[depth] = covered[depth - 1]
        if box >= 0:
            contents[behind] = _FREE
            contents[here] = box
            total_distance[depth] += distances[box, here] - distances[box, behind]
            covered[depth] += is_target[here] - is_target[behind]
        actions[depth] = 0
        if depth < deepest:
            actions[depth] = _open_actions(neighbours, there, contents, table[slot, num_words:], word_of, bit_of)
        if covered[depth] == 0:
            score = changes[depth] * total_distance[depth]
            if score > best_score:
                best_score = score
                best_player = there
                # Forward play ends at the first solved position it meets: the last one on this path.
                solved = depth
                while covered[solved] < num_boxes:
                    solved -= 1
                best_length = depth - solved
                for cell in range(num_cells):
                    if contents[cell] >= 0:
                        best_boxes[contents[cell]] = cell
                for step in range(best_length):
                    best_directions[step] = directions[solved + 1 + step]
                    best_pulled[step] = pulls[solved + 1 + step] >= 0
    return (
        best_score,
        num_states,
        best_boxes,
        best_player,
        best_directions[:best_length],
        best_pulled[:best_length],
    )
