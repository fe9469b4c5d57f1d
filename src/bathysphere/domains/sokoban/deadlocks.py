"""Positions that are lost for good, recognised without search.

A square is dead if a box could not be pushed from there to any target, even alone on the board. A box is frozen if it
can never be pushed, or only onto dead squares. A position is lost if a frozen box is off target, and also if the boxes
cannot have a target each among those within their reach. Others that are lost, such as those where the player cannot
get behind a box, are not recognised.
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np
from numba import njit
from numpy.typing import NDArray

from bathysphere.domains.base import States
from bathysphere.domains.sokoban.rules import (
    BOX,
    BOX_ON_TARGET,
    COLUMN_STEPS,
    FLOOR,
    NUM_CODES,
    PLAYER_ON_TARGET,
    ROW_STEPS,
    TARGET,
    WALL,
)

# What never changes about a cell, WALL, FLOOR or TARGET, by cell code; codes that are none block like walls.
GROUND = np.full(256, WALL, np.uint8)
GROUND[1:NUM_CODES] = FLOOR
GROUND[[TARGET, BOX_ON_TARGET, PLAYER_ON_TARGET]] = TARGET

_MAX_TARGETS = 63  # bits of a set of targets; where there are more, some share a bit


def hopeless(states: States, shape: tuple[int, int]) -> NDArray[np.bool_]:
    """Tells which of `states` are seen to be unsolvable. Some that are may be missed; a solvable one is never named.

    Args:
      states: cell codes, C-contiguous uint8 [n, height * width]. Any bytes are safe: codes above 6 and what lies
        outside the board block like walls.
      shape: (height, width).

    Returns:
      Bool [n]. Solved boards are not hopeless: each box has the target that it is on.
    """
    is_lost = np.empty(len(states), np.bool_)
    _judge_all(states, neighbours_of(shape), is_lost)
    return is_lost


@lru_cache(maxsize=8)
def neighbours_of(shape: tuple[int, int]) -> NDArray[np.int64]:
    """Returns the cells next to each, int64 [S + 1, 4] in the order of the actions; S stands for all cells outside."""
    height, width = shape
    cells = np.full((height + 2, width + 2), height * width)
    cells[1:-1, 1:-1] = np.arange(height * width).reshape(shape)
    sides = [np.roll(cells, (-dy, -dx), (0, 1))[1:-1, 1:-1] for dy, dx in zip(ROW_STEPS, COLUMN_STEPS, strict=True)]
    return np.concatenate([np.stack(sides, axis=2).reshape(-1, 4), np.full((1, 4), height * width)])


@njit(cache=True, nogil=True)
def _judge_all(states, neighbours, is_lost) -> None:  # type: ignore[no-untyped-def]
    """Tells for every state whether it is seen to be lost.

    Invariant: from the first survey on, `reach` and `num_targets` belong to `ground`. A state of another ground, which
    is seldom where states come level by level, is surveyed anew; that takes little longer than to judge a state.

    Mutates: is_lost [n], every entry.
    """
    size = states.shape[1]
    ground = np.empty(size + 1, np.uint8)  # the last cell is the wall outside
    reach = np.empty(size + 1, np.int64)
    num_targets = -1
    boxes = np.empty(size, np.int64)
    is_fixed = np.zeros(size + 1, np.bool_)
    for i in range(states.shape[0]):
        state = states[i]
        num_boxes = 0
        for cell in range(size):
            code = state[cell]
            boxes[num_boxes] = cell
            num_boxes += (code == BOX) | (code == BOX_ON_TARGET)
        if num_targets < 0 or not _has_ground(state, ground):
            num_targets = _survey(state, neighbours, ground, reach)
        placed = boxes[:num_boxes]
        is_lost[i] = any_is_frozen(placed, ground, reach, neighbours, is_fixed) or (
            num_targets <= _MAX_TARGETS and not _all_find_targets(placed, reach, num_targets)
        )


@njit(cache=True, nogil=True)
def _has_ground(state, ground) -> bool:  # type: ignore[no-untyped-def]
    """Tells whether a state, uint8 [S], has this ground, uint8 [S + 1]."""
    num_different = 0
    for cell in range(len(state)):
        num_different += GROUND[state[cell]] != ground[cell]
    return num_different == 0


@njit(cache=True, nogil=True)
def _survey(state, neighbours, ground, reach) -> int:  # type: ignore[no-untyped-def]
    """Finds the ground of a state, and to which targets a box alone on the board could be pushed from each cell.

    Works backwards: a box comes to `cell` from the side `start` if one can stand on the far side of `start`.
    Invariant: every cell whose targets its sides may not all have yet is on the stack, once.

    Mutates: ground [S + 1] and reach [S + 1], every entry; bit t of reach stands for the t-th target.

    Returns:
      The number of targets.
    """
    size = len(state)
    stack = np.empty(size, np.int64)
    is_stacked = np.zeros(size + 1, np.bool_)
    height = 0
    for cell in range(size):
        ground[cell] = GROUND[state[cell]]
        reach[cell] = 0
        if ground[cell] == TARGET:
            reach[cell] = 1 << (height % _MAX_TARGETS)
            stack[height] = cell
            is_stacked[cell] = True
            height += 1
    ground[size] = WALL
    reach[size] = 0
    num_targets = height
    while height > 0:
        height -= 1
        cell = stack[height]
        is_stacked[cell] = False
        for side in range(4):
            start = neighbours[cell, side]
            stand = neighbours[start, side]
            if ground[start] != WALL and ground[stand] != WALL and reach[cell] & ~reach[start]:
                reach[start] |= reach[cell]
                if not is_stacked[start]:
                    is_stacked[start] = True
                    stack[height] = start
                    height += 1
    return num_targets


@njit(cache=True, nogil=True)
def any_is_frozen(boxes, ground, reach, neighbours, is_fixed) -> bool:  # type: ignore[no-untyped-def]
    """Tells whether no solution can move one of `boxes`, int64 [b], that is off target.

    Begins with all boxes fixed and releases those that could be pushed between the walls and the fixed ones, onto a
    square that is not dead, until there are none. No solution pushes one of the rest: the first such push would find
    all the others in place. A box on a dead square is among them, because all its ways lead to dead squares.

    Invariant: a box that is not fixed can perhaps be pushed; `is_fixed` is False everywhere but at boxes.

    Mutates: is_fixed [S + 1], which is all False before and after.
    """
    for box in boxes:
        is_fixed[box] = True
    num_left, num_before = len(boxes), len(boxes) + 1
    while num_left < num_before:
        num_before = num_left
        for box in boxes:
            if is_fixed[box]:
                for axis in range(2):
                    one, other = neighbours[box, axis], neighbours[box, axis + 2]
                    is_open = ground[one] != WALL and ground[other] != WALL and not (is_fixed[one] or is_fixed[other])
                    if is_open and (reach[one] | reach[other]):
                        is_fixed[box] = False
                        num_left -= 1
                        break
    found = False
    for box in boxes:
        found |= is_fixed[box] and ground[box] != TARGET
        is_fixed[box] = False
    return found


@njit(cache=True, nogil=True)
def _all_find_targets(boxes, reach, num_targets) -> bool:  # type: ignore[no-untyped-def]
    """Tells whether each of `boxes`, int64 [b], could have a target within its reach for itself."""
    owner = np.full(num_targets, -1)
    queue, previous = np.empty(num_targets, np.int64), np.empty(num_targets, np.int64)
    num_served = 0
    while num_served < len(boxes) and _find_target(boxes[num_served], reach, owner, queue, previous):
        num_served += 1
    return num_served == len(boxes)


@njit(cache=True, nogil=True)
def _find_target(box, reach, owner, queue, previous) -> bool:  # type: ignore[no-untyped-def]
    """Gives a box a target, for which others may have to change theirs (an augmenting path).

    Goes breadth first over targets, from one to those its owner could have instead. There is no recursion, because
    what Numba reads of it from its disk cache crashes (its issue 6061).

    Invariant: no target is queued twice, so the queue cannot overflow; `previous` leads from a queued target, owner by
    owner, back to one that `box` can reach.

    Mutates: owner, the box that has each target, -1 for none, unless no target is found; queue and previous, which are
      room to work in. All int64 [num_targets].
    """
    head, tail, queued = 0, 0, 0
    asking, through = box, -1
    while True:
        for target in range(len(owner)):
            if (reach[asking] & ~queued) >> target & 1:
                previous[target] = through
                if owner[target] < 0:
                    given = target
                    while previous[given] >= 0:
                        owner[given] = owner[previous[given]]
                        given = previous[given]
                    owner[given] = box
                    return True
                queued |= 1 << target
                queue[tail] = target
                tail += 1
        if head == tail:
            return False
        through = queue[head]
        asking = owner[through]
        head += 1
