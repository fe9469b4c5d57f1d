"""Random levels: carve a room, put boxes on targets, play backwards to a hard position."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from bathysphere.domains.sokoban.levels import Level, pad
from bathysphere.domains.sokoban.reverse_play import play_backwards
from bathysphere.domains.sokoban.rooms import Room, carve_corridors, carve_hall, carve_walk, grow_cluster
from bathysphere.domains.sokoban.rules import BOX, FLOOR, PLAYER, PLAYER_ON_TARGET, TARGET
from bathysphere.errors import BathysphereError

ROOMS = ("walk", "hall", "corridors")
CELLS_PER_BOX = 6  # of the room, at least, where the number of boxes is drawn; the authors' boards have about 7
MAX_SIDE = 100  # cells; far beyond it the search needs more memory than a level is worth
VERSION = 1  # raise it whenever the same settings, seed and number make another level: stored levels are then made anew


@dataclass(frozen=True)
class GeneratorConfig:
    """How levels are made. Every default but that of max_calls is the authors' constant.

    The fields from `smallest` on mix boards of different kinds; at their defaults all boards are of one kind.
    """

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
    smallest: int | None = None
    """Mixed sizes: rows and columns are drawn, each from this up, and walls fill the rest. None: all have full size."""
    fewest_boxes: int | None = None
    """Boxes are drawn from this to num_boxes, or to as many as a small room has place for. None: always num_boxes."""
    rooms: tuple[str, ...] = ("walk",)
    """Kinds of rooms, one drawn for each board: walk (a walk carves it), hall (open, with pillars), corridors."""
    grouped: float = 0.0
    """Probability that a board's targets lie side by side instead of scattered, 0 to 1."""
    shallowest: int | None = None
    """Reverse play: each board's limit is drawn from this to max_depth; low ones make easy boards. None: max_depth."""

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
            _check_whole(name, getattr(self, name), least, most)
        for name, least, most in (
            ("smallest", 3, min(self.height, self.width)),
            ("fewest_boxes", 1, self.num_boxes),
            ("shallowest", 2, self.max_depth),
        ):
            if getattr(self, name) is not None:
                _check_whole(name, getattr(self, name), least, most)
        if not 0 <= self.turn_probability <= 1:
            raise BathysphereError(f"turn_probability must be from 0 to 1; got {self.turn_probability!r}.")
        if not 0 < self.walk_length <= 1000:
            raise BathysphereError(f"walk_length must be above 0 and at most 1000; got {self.walk_length!r}.")
        if not self.brushes or any(len(b) != 11 or set(b[3::4]) - {"/"} for b in self.brushes):
            raise BathysphereError(
                f"brushes must be 3x3 shapes such as '000/111/000', at least one; got {self.brushes!r}."
            )
        if not self.rooms or any(kind not in ROOMS for kind in self.rooms):
            raise BathysphereError(f"rooms must be some of {', '.join(ROOMS)}, at least one; got {self.rooms!r}.")
        if not 0 <= self.grouped <= 1:
            raise BathysphereError(f"grouped is a probability and must be from 0 to 1; got {self.grouped!r}.")
        height, width = (self.height, self.width) if self.smallest is None else (self.smallest, self.smallest)
        num_boxes = self.num_boxes if self.fewest_boxes is None else self.fewest_boxes
        room = (height - 2) * (width - 2)
        if room < num_boxes + 2:
            raise BathysphereError(
                f"{num_boxes} boxes do not fit a {height}x{width} board: it has {room} cells "
                f"inside its border and needs {num_boxes + 2}. Take a larger board or fewer boxes."
            )


def _check_whole(name: str, value: Any, least: int, most: int) -> None:
    is_whole = isinstance(value, int | np.integer) and not isinstance(value, bool)
    if not (is_whole and least <= value <= most):
        raise BathysphereError(
            f"The level generator's {name} must be a whole number from {least} to {most}; got {value!r}."
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
        plan = _draw_plan(config, rng)
        for _ in range(config.max_tries):
            if found := _try_room(config, plan, rng, str(index)):
                return GeneratedLevel(*found, num_failed_calls)
    raise BathysphereError(
        f"No playable level in {config.max_calls * config.max_tries} rooms of {config.height}x{config.width} "
        f"with {config.num_boxes} boxes. Take a larger board, fewer boxes or a longer walk (walk_length), or look at "
        "more of each room (max_states)."
    )


class _Plan(NamedTuple):
    """What one call of the generator is to make."""

    shape: tuple[int, int]  # rows and columns, border walls included
    kind: str  # of room
    box_share: float  # of the way from the fewest boxes to the most, 0 to 1
    is_grouped: bool  # whether the targets lie side by side
    max_depth: int  # of the reverse play


def _draw_plan(config: GeneratorConfig, rng: np.random.Generator) -> _Plan:
    """Draws what a board is like. Nothing is drawn for what is the same on all boards: seeds keep their boards."""
    height, width, max_depth, box_share = config.height, config.width, config.max_depth, 1.0
    if config.smallest is not None:
        height = int(rng.integers(config.smallest, height, endpoint=True))
        width = int(rng.integers(config.smallest, width, endpoint=True))
    kind = config.rooms[rng.integers(len(config.rooms)) if len(config.rooms) > 1 else 0]
    if config.fewest_boxes is not None:
        box_share = rng.random()
    is_grouped = config.grouped > 0 and bool(rng.random() < config.grouped)
    if config.shallowest is not None:
        max_depth = int(rng.integers(config.shallowest, max_depth, endpoint=True))
    return _Plan((height, width), kind, box_share, is_grouped, max_depth)


def _try_room(config: GeneratorConfig, plan: _Plan, rng: np.random.Generator, title: str) -> tuple[Level, int] | None:
    """Returns a level and its score from one room, or None if the room is no good."""
    room = _carve_room(config, plan.kind, plan.shape, rng)
    cells = np.argwhere(room)
    num_boxes = _num_boxes(config, plan, len(cells))
    if len(cells) <= num_boxes + 1:
        return None
    start, targets = _place(room, cells, num_boxes, plan.is_grouped, rng)
    found = play_backwards(room, targets, start, plan.max_depth, config.max_states)
    if found.score == 0:
        return None
    grid = np.where(room, FLOOR, 0).astype(np.uint8)
    grid[targets[:, 0], targets[:, 1]] = TARGET
    grid[found.boxes[:, 0], found.boxes[:, 1]] = BOX
    grid[found.player] = PLAYER_ON_TARGET if grid[found.player] == TARGET else PLAYER
    return Level(title, pad(grid, (config.height, config.width)), found.solution), found.score


def _carve_room(config: GeneratorConfig, kind: str, shape: tuple[int, int], rng: np.random.Generator) -> Room:
    """Returns where one can walk, bool [height, width], False on the border. The room is connected."""
    if kind == "hall":
        return carve_hall(shape, rng)
    if kind == "corridors":
        return carve_corridors(shape, rng)
    return carve_walk(shape, rng, int(config.walk_length * sum(shape)), config.turn_probability, config.brushes)


def _num_boxes(config: GeneratorConfig, plan: _Plan, num_cells: int) -> int:
    """Returns how many boxes a room of `num_cells` cells gets."""
    if config.fewest_boxes is None:
        return config.num_boxes
    most = max(min(config.num_boxes, num_cells // CELLS_PER_BOX), config.fewest_boxes)
    return config.fewest_boxes + int(plan.box_share * (most + 1 - config.fewest_boxes))


def _place(
    room: Room, cells: NDArray[np.int64], num_boxes: int, is_grouped: bool, rng: np.random.Generator
) -> tuple[tuple[int, int], NDArray[np.int64]]:
    """Returns the player's cell and the targets, int64 [num_boxes, 2].

    Args:
      room: bool [height, width].
      cells: row and column of each of its cells, int64 [n, 2], n > num_boxes.
      num_boxes: number of targets.
      is_grouped: whether they lie side by side.
      rng: source of the draws.
    """
    if is_grouped:
        targets = grow_cluster(room, num_boxes, rng)
        is_taken = (cells[:, None] == targets).all(axis=2).any(axis=1)
        player = rng.choice(cells[~is_taken])
    else:  # drawing without replacement, in order: the player first, then one target after the other
        chosen = rng.permutation(cells)[: num_boxes + 1]
        player, targets = chosen[0], chosen[1:]
    return (int(player[0]), int(player[1])), targets
