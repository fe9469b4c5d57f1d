"""Maps of Toy Montezuma's Revenge: the whole world as one picture of characters, rooms side by side.

    ; a comment
    room size: 10 x 10
    first room: 0, 0

    ##########
    #....@...#
    ...

All rooms have one size, so the picture is a grid of rooms, and `first room` names the upper left one. To
leave a room is to step over its edge onto the neighbouring character, which belongs to the next room.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from bathysphere.errors import BathysphereError

NO_ROOM, WALL, FLOOR, KEY, DOOR, TRAP, GOAL = range(7)
CHARACTERS = {"-": NO_ROOM, "#": WALL, ".": FLOOR, "@": FLOOR, "k": KEY, "D": DOOR, "^": TRAP, "G": GOAL}
LEGEND = "# wall, . floor, @ start, k key, D door, ^ trap, G goal room, - no room"
MAX_BYTES = 1_000_000
MAX_SIDE = 255  # room numbers, cell numbers and the number of keys held are single bytes of the state
MAX_CELLS = 300_000  # looked at in search of a way to the goal: half a second or so

_FOLDER = Path(__file__).parent / "maps"


@dataclass(frozen=True)
class WorldMap:
    """A checked map. Positions are (x, y) in characters of the whole picture, `height` x `width`."""

    source: str  # the file it came from, for messages
    tiles: NDArray[np.uint8]  # uint8 [height, width], the codes above
    item_index: NDArray[np.int64]  # int64 [height, width], which key or door this is, counted apart; else -1
    room_size: tuple[int, int]  # width, height of each room
    first_room: tuple[int, int]  # x, y that the upper left room is called
    start: tuple[int, int]  # x, y of the start
    keys: tuple[tuple[int, int], ...]  # in the order of the state's bytes: by room x, room y, cell x, cell y
    doors: tuple[tuple[int, int], ...]  # in the same order

    def rooms(self) -> list[tuple[int, int]]:
        """Returns the (x, y) names of all rooms, goal rooms too, row by row."""
        width, height = self.room_size
        corners = self.tiles[::height, ::width]
        return [(int(x) + self.first_room[0], int(y) + self.first_room[1]) for y, x in np.argwhere(corners != NO_ROOM)]


def builtin_names() -> list[str]:
    """Returns the names of the maps that come with the package."""
    return sorted(path.stem for path in _FOLDER.glob("*.map"))


def load_map(name_or_path: str) -> WorldMap:
    """Reads a map that comes with the package by its name, any other by its path.

    Raises:
      BathysphereError: if there is no such map or it is not a world one can solve.
    """
    if name_or_path in builtin_names():
        path = _FOLDER / f"{name_or_path}.map"
    else:
        path = Path(name_or_path)
    try:
        if path.stat().st_size > MAX_BYTES:
            raise BathysphereError(f"{path}: a map has at most {MAX_BYTES} bytes; this file has {path.stat().st_size}.")
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise BathysphereError(
            f"There is no readable map '{name_or_path}' ({error}). Give the path of a text file or one of: "
            f"{', '.join(builtin_names())}."
        ) from error
    return parse_map(text, str(path))


def parse_map(text: str, source: str) -> WorldMap:
    """Reads a map from its text; `source` names it in messages.

    Raises:
      BathysphereError: naming the line and what to do about it.
    """
    room_size, first_room, picture, first_line = _split(text, source)
    _check_picture(picture, first_line, room_size, source)
    tiles = np.array([[CHARACTERS[char] for char in row] for row in picture], np.uint8)
    shape = (tiles.shape[1] // room_size[0], tiles.shape[0] // room_size[1])
    if max(*room_size, first_room[0] + shape[0] - 1, first_room[1] + shape[1] - 1) > MAX_SIDE:
        raise BathysphereError(f"{source}: rooms and their numbers must not exceed {MAX_SIDE}. Make the map smaller.")
    _check_rooms(tiles, room_size, first_line, source)
    world = WorldMap(
        source,
        tiles,
        np.full(tiles.shape, -1, np.int64),
        room_size,
        first_room,
        _find_start(picture, first_line, source),
        _places(tiles, KEY, room_size),
        _places(tiles, DOOR, room_size),
    )
    for places in (world.keys, world.doors):
        for index, (x, y) in enumerate(places):
            world.item_index[y, x] = index
    if len(world.keys) > MAX_SIDE:
        raise BathysphereError(
            f"{source}: at most {MAX_SIDE} keys (k) fit; this map has {len(world.keys)}. Remove some."
        )
    if not (tiles == GOAL).any():
        raise BathysphereError(f"{source}: no goal room. Fill one room of the picture with G.")
    if not goal_reachable(world):
        raise BathysphereError(
            f"{source}: the goal room cannot be reached from the start, even without touching traps. "
            "Check for walls around it and for a key too few."
        )
    return world


def _split(text: str, source: str) -> tuple[tuple[int, int], tuple[int, int], list[str], int]:
    """Returns room size, first room, the picture and the number of its first line."""
    fields: dict[str, tuple[int, int]] = {}
    lines = text.splitlines()
    for number, line in enumerate(lines, start=1):
        if not line.strip() or line.startswith(";"):
            continue
        if ":" not in line:
            picture = [row.rstrip() for row in lines[number - 1 :]]
            while picture and not picture[-1]:
                picture.pop()
            break
        key, _, value = line.partition(":")
        numbers = re.fullmatch(r"\s*(\d{1,6})\s*[x,]\s*(\d{1,6})\s*", value)
        if key.strip() not in ("room size", "first room") or numbers is None:
            raise BathysphereError(
                f"{source}, line {number}: expected 'room size: 10 x 10' or 'first room: 0, 0'; "
                f"got '{line.strip()[:60]}'."
            )
        fields[key.strip()] = (int(numbers[1]), int(numbers[2]))
    else:
        raise BathysphereError(f"{source}: no picture. Draw the rooms below the header with: {LEGEND}.")
    if 0 in fields.get("room size", (0, 0)):
        raise BathysphereError(f"{source}: no room size. Write a line such as 'room size: 10 x 10' above the picture.")
    return fields["room size"], fields.get("first room", (0, 0)), picture, number


def _check_picture(picture: list[str], first_line: int, room_size: tuple[int, int], source: str) -> None:
    for number, row in enumerate(picture, start=first_line):
        if len(row) != len(picture[0]):
            raise BathysphereError(
                f"{source}, line {number}: {len(row)} characters, but the picture's first row has "
                f"{len(picture[0])}. Make all rows equally long; write - where there is no room."
            )
        if unknown := set(row) - set(CHARACTERS):
            column = min(map(row.index, unknown))
            raise BathysphereError(
                f"{source}, line {number}, column {column + 1}: unknown tile '{row[column]}'. Use: {LEGEND}."
            )
    width, height = room_size
    if len(picture[0]) % width or len(picture) % height:
        raise BathysphereError(
            f"{source}: the picture is {len(picture[0])} x {len(picture)} characters, which is not a "
            f"whole number of {width} x {height} rooms. Complete the last rooms or change 'room size'."
        )


def _check_rooms(tiles: NDArray[np.uint8], room_size: tuple[int, int], first_line: int, source: str) -> None:
    """Checks that each room is wholly there, wholly absent (-) or wholly goal (G)."""
    width, height = room_size
    corners = tiles[::height, ::width].repeat(height, 0).repeat(width, 1)  # of the room that a cell is in
    for code, char in ((NO_ROOM, "-"), (GOAL, "G")):
        odd = np.argwhere((tiles == code) != (corners == code))
        if len(odd):
            y, x = odd[0]
            raise BathysphereError(
                f"{source}, line {first_line + y}, column {x + 1}: a room is drawn either with '{char}' everywhere or "
                f"nowhere. Fill its {width} x {height} characters."
            )


def _find_start(picture: list[str], first_line: int, source: str) -> tuple[int, int]:
    starts = [(x, y) for y, row in enumerate(picture) if "@" in row for x, char in enumerate(row) if char == "@"]
    if not starts:
        raise BathysphereError(f"{source}: no start. Put one @ on a floor cell.")
    if len(starts) > 1:
        lines = " and ".join(str(first_line + y) for _, y in starts[:2])
        raise BathysphereError(f"{source}, lines {lines}: {len(starts)} starts (@). Keep one.")
    return starts[0]


def _places(tiles: NDArray[np.uint8], code: int, room_size: tuple[int, int]) -> tuple[tuple[int, int], ...]:
    width, height = room_size
    found = [(int(x), int(y)) for y, x in np.argwhere(tiles == code)]
    return tuple(sorted(found, key=lambda p: (p[0] // width, p[1] // height, p[0] % width, p[1] % height)))


def goal_reachable(world: WorldMap) -> bool:
    """Tells whether some order of opening doors leads to a goal room, avoiding traps.

    Every walk can be walked back and keys are never in the way, so it is enough to try which doors to open:
    with one set of open doors, all keys in reach count as collected. A map in which more than `MAX_CELLS` cells
    would have to be looked at gets the benefit of the doubt.
    """
    if not _flood(world, frozenset(world.doors))[2]:
        return False
    tried: set[frozenset[tuple[int, int]]] = set()
    waiting = [(frozenset[tuple[int, int]](), frozenset[tuple[int, int]]())]  # open doors, and one more
    looked = 0
    while waiting and looked < MAX_CELLS:
        opened = frozenset.union(*waiting.pop())
        looked += len(opened) + 1
        if opened in tried:
            continue
        tried.add(opened)
        area, closed, goal = _flood(world, opened)
        if goal:
            return True
        looked += len(area) + len(closed)
        if sum(key in area for key in world.keys) > len(opened):
            waiting.extend((opened, frozenset({door})) for door in closed)
    return bool(waiting)


def _flood(
    world: WorldMap, opened: frozenset[tuple[int, int]]
) -> tuple[set[tuple[int, int]], set[tuple[int, int]], bool]:
    """Returns the cells in reach, the closed doors at their border, and whether a goal room is there."""
    (height, width), tiles = world.tiles.shape, world.tiles.tolist()
    area, closed, goal = {world.start}, set(), False
    frontier = [world.start]
    while frontier:
        x, y = frontier.pop()
        for cell in ((x, y - 1), (x + 1, y), (x, y + 1), (x - 1, y)):
            if cell in area or not (0 <= cell[0] < width and 0 <= cell[1] < height):
                continue
            tile = tiles[cell[1]][cell[0]]
            if tile == GOAL:
                goal = True
            elif tile == DOOR and cell not in opened:
                closed.add(cell)
            elif tile in (FLOOR, KEY, DOOR):
                area.add(cell)
                frontier.append(cell)
    return area, closed, goal
