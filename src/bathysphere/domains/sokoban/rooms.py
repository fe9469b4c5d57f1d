"""Rooms of different kinds to make levels in, and where in them the targets lie."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
from numba import njit
from numpy.typing import NDArray

Room = NDArray[np.bool_]  # where one can walk, [height, width], False on the border
_Cell = tuple[int, int]  # row and column

_LONGEST_SIDE = 5  # cells, of a room among corridors
_ROOM_TRIES = 20  # places tried for rooms among corridors


def carve_walk(
    shape: tuple[int, int], rng: np.random.Generator, num_steps: int, turn_probability: float, brushes: tuple[str, ...]
) -> Room:
    """Returns a room that a random walk with a brush has carved, bool [height, width]. It is connected.

    Args:
      shape: (height, width) with the border, each at least 3.
      rng: source of the draws.
      num_steps: of the walk.
      turn_probability: chance to draw a new direction before each step.
      brushes: 3x3 shapes such as "000/111/000", one of which each step carves around itself.
    """
    shapes = np.array([[[c == "1" for c in row] for row in brush.split("/")] for brush in brushes])
    room: Room = _walk(rng, *shape, num_steps, turn_probability, shapes)
    return room


@njit(cache=True, nogil=True)
def _walk(rng, height, width, num_steps, turn_probability, brushes):  # type: ignore[no-untyped-def]
    """Walks through solid rock with a brush of 3x3 cells; see `carve_walk`.

    Invariant: (y, x) is inside the border, so the brush never leaves the board.

    Args:
      brushes: bool [k, 3, 3].

    Mutates: rng, exactly as the same draws outside a kernel would.
    """
    room = np.zeros((height, width), np.bool_)
    y, x = rng.integers(1, height - 1), rng.integers(1, width - 1)
    direction = rng.integers(0, 4)  # up, down, left, right
    for _ in range(num_steps):
        if rng.random() < turn_probability:
            direction = rng.integers(0, 4)
        step = 2 * (direction & 1) - 1
        if direction < 2:
            y = min(max(y + step, 1), height - 2)
        else:
            x = min(max(x + step, 1), width - 2)
        room[y - 1 : y + 2, x - 1 : x + 2] |= brushes[rng.integers(0, len(brushes))]
    room[0], room[-1] = False, False
    room[:, 0], room[:, -1] = False, False
    return room


def carve_hall(shape: tuple[int, int], rng: np.random.Generator) -> Room:
    """Returns an open rectangle with a few pillars and stubs of wall, bool [height, width]. It is connected.

    Args:
      shape: (height, width) with the border, each at least 3.
      rng: source of the draws.
    """
    height, width = shape
    room = np.zeros(shape, np.bool_)
    room[1:-1, 1:-1] = True
    area = (height - 2) * (width - 2)
    for _ in range(rng.integers(1, area // 10 + 3)):
        y, x = int(rng.integers(1, height - 1)), int(rng.integers(1, width - 1))
        rows, columns = rng.integers(1, 3, size=2).tolist()  # a pillar
        if rng.random() < 0.5:  # a stub: a thin piece of wall that begins at the border
            length = int(rng.integers(1, 4))
            if rng.random() < 0.5:
                y, rows, columns = (1 if rng.random() < 0.5 else height - 1 - length), length, 1
            else:
                x, rows, columns = (1 if rng.random() < 0.5 else width - 1 - length), 1, length
        room[max(y, 1) : y + rows, max(x, 1) : x + columns] = False
    return _largest_part(room)


def carve_corridors(shape: tuple[int, int], rng: np.random.Generator) -> Room:
    """Returns small rooms joined by corridors one cell wide, bool [height, width]. All of it is connected.

    It is empty where the first room leaves no place for a second one, as happens on small boards.

    Args:
      shape: (height, width) with the border, each at least 3.
      rng: source of the draws.
    """
    height, width = shape
    room, reserved = np.zeros(shape, np.bool_), np.zeros(shape, np.bool_)
    most_rooms = int(rng.integers(2, 3 + (height - 2) * (width - 2) // 30))
    longest_sides = [min(side // 3, _LONGEST_SIDE) for side in shape]
    apart = 1 if min(shape) < 10 else 2  # cells of rock around a room: far apart, where that fits, corridors are long
    doors: list[_Cell] = []
    for _ in range(_ROOM_TRIES):
        rows, columns = (int(rng.integers(min(2, longest), longest + 1)) for longest in longest_sides)
        y, x = int(rng.integers(1, height - rows)), int(rng.integers(1, width - columns))
        if len(doors) == most_rooms or reserved[y : y + rows, x : x + columns].any():
            continue
        room[y : y + rows, x : x + columns] = True
        reserved[max(y - apart, 0) : y + rows + apart, max(x - apart, 0) : x + columns + apart] = True
        if min(rows, columns) > 1 and rng.random() < 0.5:  # a corner bitten off, because few rooms are rectangles
            room[y + rng.integers(2) * (rows - 1), x + rng.integers(2) * (columns - 1)] = False
        doors.append((y + int(rng.integers(rows)), x + int(rng.integers(columns))))
    if len(doors) < 2:
        return np.zeros(shape, np.bool_)
    for (y, x), (to_y, to_x) in pairwise(doors):
        # From one door to the next with one bend: along the row of the first, or along that of the second.
        row, column = (y, to_x) if rng.random() < 0.5 else (to_y, x)
        room[row, min(x, to_x) : max(x, to_x) + 1] = True
        room[min(y, to_y) : max(y, to_y) + 1, column] = True
    return room


def _largest_part(room: Room) -> Room:
    """Returns the largest connected part of a room, bool [height, width]; the first of equals."""
    left: set[_Cell] = {(y, x) for y, x in np.argwhere(room).tolist()}
    largest: set[_Cell] = set()
    while len(left) > len(largest):
        part = [min(left)]
        left.remove(part[0])
        for cell in part:  # which grows meanwhile
            near = left.intersection(_neighbours(cell))
            left -= near
            part += near
        largest = max(largest, set(part), key=len)
    only = np.zeros_like(room)
    if largest:
        only[tuple(zip(*largest, strict=True))] = True
    return only


def grow_cluster(room: Room, size: int, rng: np.random.Generator) -> NDArray[np.int64]:
    """Returns `size` cells of a room that lie side by side, int64 [size, 2], in blocks and along walls by preference.

    Args:
      room: bool [height, width], connected, with at least `size` cells.
      size: number of cells, at least 1.
      rng: source of the draws.
    """
    cells = np.argwhere(room)
    cluster: list[_Cell] = [tuple(rng.choice(cells).tolist())]
    while len(cluster) < size:
        edge = sorted({near for cell in cluster for near in _neighbours(cell) if room[near]} - set(cluster))
        # How many sides of a cell are wall or cluster; the noise makes blocks, rows and crooked shapes alike.
        closed = [sum(not room[near] or near in cluster for near in _neighbours(cell)) for cell in edge]
        cluster.append(edge[int(np.argmax(closed + rng.uniform(0, 3, len(edge))))])
    return np.array(cluster)


def _neighbours(cell: _Cell) -> tuple[_Cell, ...]:
    y, x = cell
    return (y - 1, x), (y + 1, x), (y, x - 1), (y, x + 1)
