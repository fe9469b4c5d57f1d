"""The rules of Toy Montezuma's Revenge on rows of bytes.

The row, for D doors and K keys:

    0-1 room x, y | 2 keys held | 3-4 cell x, y | 5.. D doors closed? | .. K keys present? | lives | terminal

and, in worlds with more than one life only, two more bytes: the cell where the room was entered, to which a
trap sends the explorer back. With 4 doors and 4 keys and one life that is 15 bytes.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from bathysphere.domains.toy_montezuma.maps import DOOR, GOAL, KEY, NO_ROOM, TRAP, WALL

ROOM_X, ROOM_Y, HELD, CELL_X, CELL_Y, DOORS = range(6)
ACTION_NAMES = ("north", "east", "south", "west")


@njit(cache=True, nogil=True)
def step_row(  # type: ignore[no-untyped-def]
    row, action, tiles, item_index, first_room, room_size, num_doors, num_keys, prizes
) -> float:
    """Plays one action on one row; returns the reward.

    A target cell that is rock, outside the world, or a door without a key to open it leaves everything as
    it is. A trap takes a life and never lets the explorer in. The same tests hold inside a room and across
    its edge.

    Invariant: held + keys present + doors opened = K, and the explorer never stands on rock, trap or closed
    door.

    Args:
      row: uint8 [S].
      action: index into ACTION_NAMES.
      tiles: uint8 [height, width], the world.
      item_index: int64 [height, width], number of the key or door at a place.
      first_room: x, y of the upper left room.
      room_size: width, height of a room.
      num_doors: D.
      num_keys: K.
      prizes: rewards for a trap, a key and a door.

    Mutates: row.
    """
    keys = DOORS + num_doors
    lives = keys + num_keys
    terminal = lives + 1
    entry = terminal + 1
    if row[terminal]:
        return 0.0

    x = (np.int64(row[ROOM_X]) - first_room[0]) * room_size[0] + row[CELL_X]
    y = (np.int64(row[ROOM_Y]) - first_room[1]) * room_size[1] + row[CELL_Y]
    if action == 0:
        y -= 1
    elif action == 1:
        x += 1
    elif action == 2:
        y += 1
    else:
        x -= 1
    if not (0 <= x < tiles.shape[1] and 0 <= y < tiles.shape[0]):
        return 0.0
    tile = tiles[y, x]
    if tile in (WALL, NO_ROOM):
        return 0.0

    if tile == TRAP:
        row[lives] -= 1
        if row[lives] == 0 or entry >= row.shape[0]:  # with one life there is no way back
            row[terminal] = 1
        else:
            row[CELL_X] = row[entry]
            row[CELL_Y] = row[entry + 1]
        return float(prizes[0])

    reward = 0.0
    if tile == KEY and row[keys + item_index[y, x]]:
        row[keys + item_index[y, x]] = 0
        row[HELD] += 1
        reward = prizes[1]
    elif tile == DOOR and row[DOORS + item_index[y, x]]:
        if row[HELD] == 0:
            return 0.0
        row[DOORS + item_index[y, x]] = 0
        row[HELD] -= 1
        reward = prizes[2]
    elif tile == GOAL:
        row[terminal] = 1
        reward = 1.0

    room_x = x // room_size[0] + first_room[0]
    room_y = y // room_size[1] + first_room[1]
    entered = room_x != row[ROOM_X] or room_y != row[ROOM_Y]
    row[ROOM_X] = room_x
    row[ROOM_Y] = room_y
    row[CELL_X] = x % room_size[0]
    row[CELL_Y] = y % room_size[1]
    if entered and entry < row.shape[0]:
        row[entry] = row[CELL_X]
        row[entry + 1] = row[CELL_Y]
    return reward


@njit(cache=True, nogil=True)
def expand(  # type: ignore[no-untyped-def]
    rows,
    tiles,
    item_index,
    first_room,
    room_size,
    num_doors,
    num_keys,
    prizes,
    out_states,
    rewards,
    terminal,
    solved,
) -> None:
    """Plays all four actions on each of `rows`, uint8 [n, S]. The other arguments are those of `step_row`.

    Mutates: out_states [n, 4, S], rewards, terminal and solved [n, 4], every entry.
    """
    at_end = DOORS + num_doors + num_keys + 1
    for i in range(rows.shape[0]):
        for action in range(4):
            row = out_states[i, action]
            for k in range(rows.shape[1]):  # faster than copying the slice
                row[k] = rows[i, k]
            rewards[i, action] = step_row(
                row, action, tiles, item_index, first_room, room_size, num_doors, num_keys, prizes
            )
            terminal[i, action] = row[at_end] != 0
            solved[i, action] = False
            if terminal[i, action]:
                x = (np.int64(row[ROOM_X]) - first_room[0]) * room_size[0] + row[CELL_X]
                y = (np.int64(row[ROOM_Y]) - first_room[1]) * room_size[1] + row[CELL_Y]
                if 0 <= x < tiles.shape[1] and 0 <= y < tiles.shape[0]:
                    solved[i, action] = tiles[y, x] == GOAL
