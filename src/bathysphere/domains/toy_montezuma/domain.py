"""Toy Montezuma's Revenge: rooms full of traps, keys and doors, and one reward in the goal room."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from bathysphere.domains.base import (
    DomainConfig,
    Features,
    ObservationSpec,
    StateMap,
    States,
    Successors,
    as_rows,
)
from bathysphere.domains.observing import Observer
from bathysphere.domains.registry import register_domain
from bathysphere.domains.toy_montezuma import rules, tiles
from bathysphere.domains.toy_montezuma.maps import CHARACTERS, DOOR, FLOOR, KEY, load_map
from bathysphere.domains.toy_montezuma.visits import Visits, moved_everywhere
from bathysphere.errors import BathysphereError


@dataclass(frozen=True)
class ToyMontezumaConfig(DomainConfig):
    """Which Toy Montezuma to explore."""

    map: str = "full"
    """full (24 rooms), four-rooms, hallway, one-room, or the path of your own map file."""
    max_steps: int = 300
    """Time limit in steps; reaching it is truncation."""
    max_lives: int = 1
    """Traps that end the episode, 1 to 255. With more than one, earlier traps send the explorer back to where
    the room was entered, and the state has two more bytes for that cell."""
    trap_reward: float = 0.0
    """Reward for running into a trap."""
    key_reward: float = 0.0
    """Reward for taking a key."""
    door_reward: float = 0.0
    """Reward for opening a door."""

    def __post_init__(self) -> None:
        """Checks the numbers; the map is checked when it is read."""
        if self.max_steps < 1:
            raise BathysphereError(f"Toy Montezuma's max_steps must be at least 1; got {self.max_steps}.")
        if not 1 <= self.max_lives <= 255:
            raise BathysphereError(f"Toy Montezuma's max_lives must be from 1 to 255; got {self.max_lives}.")
        if not np.isfinite([self.trap_reward, self.key_reward, self.door_reward]).all():
            raise BathysphereError(
                f"Toy Montezuma's trap_reward, key_reward and door_reward are {self.trap_reward}, {self.key_reward} "
                f"and {self.door_reward}; expected finite numbers."
            )


@register_domain
class ToyMontezuma:
    """The Toy Montezuma domain. `rules` describes the row of bytes; networks see it as it is, unscaled."""

    name = "toy-montezuma"
    Config = ToyMontezumaConfig
    action_names: tuple[str, ...] = rules.ACTION_NAMES

    def __init__(self, config: ToyMontezumaConfig | None = None) -> None:
        self.config = config or ToyMontezumaConfig()
        self.world = load_map(self.config.map)
        self.max_steps = self.config.max_steps
        entry_bytes = 2 if self.config.max_lives > 1 else 0
        self.state_size = rules.DOORS + len(self.world.doors) + len(self.world.keys) + 2 + entry_bytes
        self.observation: ObservationSpec = Features(self.state_size)
        self.rooms = self.world.rooms()
        self._prizes = np.array([self.config.trap_reward, self.config.key_reward, self.config.door_reward])

        # The number of the room at each place of the picture, -1 where there is none.
        width, height = self.world.room_size
        self._room_numbers = np.full([n // m for n, m in zip(self.world.tiles.shape, (height, width), strict=True)], -1)
        for number, (x, y) in enumerate(self.rooms):
            self._room_numbers[y - self.world.first_room[1], x - self.world.first_room[0]] = number

    def initial(self, n: int, rng: np.random.Generator) -> States:
        """Returns `n` times the start. Nothing is random."""
        (x, y), (width, height) = self.world.start, self.world.room_size
        first_x, first_y = self.world.first_room
        cell = [x % width, y % height]
        items = [1] * (len(self.world.doors) + len(self.world.keys))
        row = [first_x + x // width, first_y + y // height, 0, *cell, *items, self.config.max_lives, 0]
        if self.config.max_lives > 1:
            row += cell
        return np.tile(np.array(row, np.uint8), (n, 1))

    def successors(self, states: States) -> Successors:
        """Plays north, east, south and west."""
        rows = as_rows(states, self.state_size)
        out = Successors.empty(len(rows), len(self.action_names), self.state_size)
        world = self.world
        rules.expand(
            rows,
            world.tiles,
            world.item_index,
            world.first_room,
            world.room_size,
            len(world.doors),
            len(world.keys),
            self._prizes,
            *out,
        )
        return out

    def observe(self, states: States) -> NDArray[np.float32]:
        """Returns the bytes as numbers, float32 [n, S]. On purpose not scaled to [0, 1]."""
        return as_rows(states, self.state_size).astype(np.float32)

    def positions(self, states: States) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Returns x and y of each explorer in the picture of the whole world, int64 [n] each."""
        rows = as_rows(states, self.state_size).astype(np.int64)
        (width, height), (first_x, first_y) = self.world.room_size, self.world.first_room
        x = (rows[:, rules.ROOM_X] - first_x) * width + rows[:, rules.CELL_X]
        return x, (rows[:, rules.ROOM_Y] - first_y) * height + rows[:, rules.CELL_Y]

    def room_index(self, states: States) -> NDArray[np.int64]:
        """Returns the index into `rooms` of the room each explorer is in, int64 [n]."""
        rows = as_rows(states, self.state_size).astype(np.int64)
        first_x, first_y = self.world.first_room
        return self._room_numbers[rows[:, rules.ROOM_Y] - first_y, rows[:, rules.ROOM_X] - first_x]

    def render(self, state: States) -> NDArray[np.uint8]:
        """Draws the room the explorer is in, and below it its name, the keys held and the lives left."""
        tiles_now, x, y = self._now(state)
        width, height = self.world.room_size
        left, top = x // width * width, y // height * height
        room = tiles_now[top : top + height, left : left + width]
        room_x, room_y, held = (int(state[i]) for i in (rules.ROOM_X, rules.ROOM_Y, rules.HELD))
        picture = tiles.draw_tiles(room, tiles.room_tile(width, height), (x - left, y - top))
        return tiles.add_status(picture, f"room {room_x},{room_y}", held, self._lives(state))

    def render_world(self, state: States | None = None, heat: NDArray[np.float64] | None = None) -> NDArray[np.uint8]:
        """Draws all rooms.

        Args:
          state: doors and keys are drawn as in this state, with the explorer; None draws the untouched world.
          heat: float64 [height, width] over the whole picture of the map, each in 0..1 and coloured from
            dark to bright, or NaN where the tile keeps its colour.
        """
        height, width = self.world.tiles.shape
        size = max(4, 1100 // max(width, height))
        if state is None:
            return tiles.draw_tiles(self.world.tiles, size, None, heat)
        tiles_now, x, y = self._now(state)
        return tiles.draw_tiles(tiles_now, size, (x, y), heat)

    def render_episode(self, states: States) -> NDArray[np.uint8]:
        """Draws an episode, uint8 [T, S], as one picture: the world, tinted by the time of the last visit."""
        heat = np.full(self.world.tiles.shape, np.nan)
        x, y = self.positions(states)
        heat[y, x] = np.linspace(0, 1, len(states))
        return self.render_world(states[-1], heat)

    def observers(self, evaluate: Callable[[States], NDArray[np.float32]]) -> list[Observer]:
        """Returns the counts of visited rooms and cells."""
        return [Visits(self, evaluate)]

    @property
    def text_styles(self) -> dict[str, str]:
        """The explorer, keys, doors, traps and the goal have colours."""
        return {
            "#": "bright_black",
            r"\.": "blue",
            "@": "bold cyan",
            r"(?<![a-z])k(?![a-z])": "bold yellow",
            "D": "magenta",
            r"\^": "bold red",
            "G": "bold green",
        }

    def state_maps(self, state: States) -> list[StateMap]:
        """Returns the map of all cells in which the explorer could be, with the keys and doors of `state`."""
        cells = np.argwhere(np.isin(self.world.tiles, (FLOOR, KEY, DOOR)))
        states = moved_everywhere(self, state)[cells[:, 0], cells[:, 1]]
        height, width = self.world.tiles.shape
        picture = self.render_world(state)
        return [StateMap("explorer", states, cells.astype(np.float64), (height, width), None, picture)]

    def places(self, states: States, shown: States) -> NDArray[np.float64]:
        """Returns where the explorers are, seen from the room that a picture of `shown` has, float64 [n, 2]."""
        width, height = self.world.room_size
        x, y = self.positions(states)
        (room_x,), (room_y,) = self.positions(shown[None])
        from_room = np.stack([y - room_y // height * height, x - room_x // width * width], axis=1) + 0.5
        return from_room / (height * tiles.room_share(width, height), width)

    def text(self, state: States) -> str:
        """Draws the room with the characters of the map notation, the explorer as `@`."""
        tiles_now, x, y = self._now(state)
        width, height = self.world.room_size
        left, top = x // width * width, y // height * height
        symbols = {code: char for char, code in CHARACTERS.items() if char != "@"}
        lines = [[symbols[int(tile)] for tile in row] for row in tiles_now[top : top + height, left : left + width]]
        lines[y - top][x - left] = "@"
        room_x, room_y, held = (int(state[i]) for i in (rules.ROOM_X, rules.ROOM_Y, rules.HELD))
        status = f"room {room_x},{room_y}  keys {held}  lives {self._lives(state)}"
        return "\n".join("".join(line) for line in lines) + "\n" + status

    def _lives(self, state: States) -> int:
        return int(state[rules.DOORS + len(self.world.doors) + len(self.world.keys)])

    def _now(self, state: States) -> tuple[NDArray[np.uint8], int, int]:
        """Returns the world's tiles without taken keys and opened doors, and the explorer's place in it."""
        tiles_now = self.world.tiles.copy()
        first_key = rules.DOORS + len(self.world.doors)
        for code, places, first in ((DOOR, self.world.doors, rules.DOORS), (KEY, self.world.keys, first_key)):
            for index, (column, row) in enumerate(places):
                tiles_now[row, column] = code if state[first + index] else FLOOR
        x, y = self.positions(state[None])
        return tiles_now, int(x[0]), int(y[0])
