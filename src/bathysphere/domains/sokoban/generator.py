"""Random levels: carve a room by a random walk, put boxes on targets, play backwards to a hard position."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numba import njit
from numpy.typing import NDArray

from bathysphere.domains.sokoban.levels import Level
from bathysphere.domains.sokoban.reverse_play import play_backwards
from bathysphere.domains.sokoban.rules import BOX, FLOOR, PLAYER, PLAYER_ON_TARGET, TARGET
from bathysphere.errors import BathysphereError

MAX_SIDE = 100  # cells; far beyond it the search needs more memory than a level is worth
VERSION = 1  # raise it whenever the same settings, seed and number make another level: stored levels are then made anew


@dataclass(frozen=True)
class GeneratorConfig:
    """How levels are made. Every default but that of max_calls is the authors' constant."""

    height: int = 10
    """Rows of the board, border walls included. 3 to 100 cells."""
    width: int = 10
    """Columns of the board, border walls included. 3 to 100 cells."""
    num_boxes: int = 4
    """Boxes, and as many targets. At least 1."""
    walk_length: float = 1.7
    """Steps of the walk that carves the room, per cell of height + width, rounded down in total."""
    turn_probability: float = 0.34
    """Chance to draw a new direction before each step of the walk, 0 to 1."""
    brushes: tuple[str, ...] = ("000/111/000", "010/010/010", "000/110/010", "000/110/110", "000/011/010")
    """3x3 shapes, one of which each step carves around itself: rows separated by slashes, 1 carves."""
    max_depth: int = 300
    """Reverse play: positions on one search path stay below this number. At least 2."""
    max_states: int = 300_000
    """Reverse play: most distinct positions visited. At least 1."""
    max_tries: int = 4
    """Rooms tried in one call of the generator before it counts as failed and starts over."""
    max_calls: int = 250
    """Failed calls in a row after which these settings are declared impossible."""

    def __post_init__(self) -> None:
        """Checks every field."""
        for name, least, most in (
            ("height", 3, MAX_SIDE),
            ("width", 3, MAX_SIDE),
            ("num_boxes", 1, MAX_SIDE**2),
            ("max_depth", 2, 10**6),
            ("max_states", 1, 10**8),
            ("max_tries", 1, 10**6),
            ("max_calls", 1, 10**6),
        ):
            value = getattr(self, name)
            whole = isinstance(value, int | np.integer) and not isinstance(value, bool)
            if not whole or not least <= value <= most:
                raise BathysphereError(
                    f"The level generator's {name} must be a whole number from {least} to {most}; got {value!r}."
                )
        if not 0 <= self.turn_probability <= 1:
            raise BathysphereError(f"turn_probability must be from 0 to 1; got {self.turn_probability!r}.")
        if not 0 < self.walk_length <= 1000:
            raise BathysphereError(f"walk_length must be above 0 and at most 1000; got {self.walk_length!r}.")
        if not self.brushes or any(len(b) != 11 or set(b[3::4]) - {"/"} for b in self.brushes):
            raise BathysphereError(
                f"brushes must be 3x3 shapes such as '000/111/000', at least one; got {self.brushes!r}."
            )
        room = (self.height - 2) * (self.width - 2)
        if room < self.num_boxes + 2:
            raise BathysphereError(
                f"{self.num_boxes} boxes do not fit a {self.height}x{self.width} board: it has {room} cells "
                f"inside its border and needs {self.num_boxes + 2}. Take a larger board or fewer boxes."
            )


class GeneratedLevel(NamedTuple):
    """A level and how it came about."""

    level: Level
    score: int  # of the reverse play, > 0
    num_failed_calls: int  # generator calls that ended with score 0 before


def generate(count: int, config: GeneratorConfig | None = None, seed: int = 0) -> list[Level]:
    """Makes `count` levels with solutions, titled by their number. Level i depends on `seed` and i only."""
    config = config or GeneratorConfig()
    return [generate_level(config, seed, index).level for index in range(count)]


def generate_level(config: GeneratorConfig, seed: int, index: int = 0) -> GeneratedLevel:
    """Makes level number `index` of those that `seed` stands for.

    Raises:
      BathysphereError: for a negative seed, or if `max_calls` calls fail, which takes impossible settings.
    """
    if seed < 0:
        raise BathysphereError(f"A seed must be a whole number from 0; got {seed}.")
    rng = np.random.default_rng([seed, index])
    for num_failed_calls in range(config.max_calls):
        for _ in range(config.max_tries):
            if found := _try_room(config, rng, str(index)):
                return GeneratedLevel(*found, num_failed_calls)
    raise BathysphereError(
        f"No playable level in {config.max_calls * config.max_tries} rooms of {config.height}x{config.width} "
        f"with {config.num_boxes} boxes. Take a larger board, fewer boxes or a longer walk."
    )


def _try_room(config: GeneratorConfig, rng: np.random.Generator, title: str) -> tuple[Level, int] | None:
    """Returns a level and its score from one room, or None if the room is no good."""
    room = carve_room(config, rng)
    cells = np.argwhere(room)
    if len(cells) <= config.num_boxes + 1:
        return None
    # Drawing without replacement, in order: the player first, then one target after the other.
    chosen = rng.permutation(cells)[: config.num_boxes + 1]
    start, targets = (int(chosen[0, 0]), int(chosen[0, 1])), chosen[1:]
    found = play_backwards(room, targets, start, config.max_depth, config.max_states)
    if found.score == 0:
        return None
    grid = np.where(room, FLOOR, 0).astype(np.uint8)
    grid[targets[:, 0], targets[:, 1]] = TARGET
    grid[found.boxes[:, 0], found.boxes[:, 1]] = BOX
    grid[found.player] = PLAYER_ON_TARGET if grid[found.player] == TARGET else PLAYER
    return Level(title, grid, found.solution), found.score


def carve_room(config: GeneratorConfig, rng: np.random.Generator) -> NDArray[np.bool_]:
    """Returns where one can walk, bool [height, width], False on the border. The room is connected."""
    brushes = np.array([[[c == "1" for c in row] for row in brush.split("/")] for brush in config.brushes])
    num_steps = int(config.walk_length * (config.height + config.width))
    room: NDArray[np.bool_] = _carve(rng, config.height, config.width, num_steps, config.turn_probability, brushes)
    return room


@njit(cache=True, nogil=True)
def _carve(rng, height, width, num_steps, turn_probability, brushes):  # type: ignore[no-untyped-def]
    """Walks through solid rock with a brush of 3x3 cells; see `carve_room`.

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
