"""Sokoban: push every box onto a target. One wrong push can spoil a level for good."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from bathysphere.domains.base import Categories, DomainConfig, ObservationSpec, StateMap, States, Successors, as_rows
from bathysphere.domains.registry import register_domain
from bathysphere.domains.sokoban import deadlocks, hindsight, rules
from bathysphere.domains.sokoban.board_cache import cache_folder
from bathysphere.domains.sokoban.board_stream import BoardStream
from bathysphere.domains.sokoban.formats import read_levels
from bathysphere.domains.sokoban.generator import GeneratorConfig, generate
from bathysphere.domains.sokoban.levels import Level, grid_text, pad
from bathysphere.domains.sokoban.lost_sets import lost_sets
from bathysphere.domains.sokoban.maps import state_maps
from bathysphere.domains.sokoban.rules import ACTION_NAMES, COLUMN_STEPS, NUM_CODES, PLAYER, ROW_STEPS, Rewards
from bathysphere.domains.sokoban.tiles import draw_board
from bathysphere.errors import BathysphereError


@dataclass(frozen=True)
class SokobanConfig(DomainConfig):
    """Which levels to play, and what moves pay."""

    level_file: str | None = None
    """Level file (Boxoban, XSB or .sok), or folder of them, to draw levels from. None: generated levels."""
    pad_levels: bool = False
    """Fill smaller levels of a file up with walls to the size of its largest. Off: refuse mixed sizes."""
    generator: GeneratorConfig = field(default_factory=GeneratorConfig)
    """Board size, number of boxes and constants of the generator. Unused with a level file."""
    num_boards: int | None = None
    """Number of generated boards to draw from. None: a fresh board for every episode."""
    board_seed: int = 0
    """Seed of those boards, from 0. Unused without num_boards."""
    rewards: Rewards = field(default_factory=Rewards)
    """What moves pay, in points."""
    show_border: bool = True
    """Whether networks see the outermost cells, which are always wall. Off, a 10x10 board is an 8x8 one to them."""
    max_steps: int = 200
    """Usual time limit of an episode, in moves. The authors' single-board runs use 100."""

    def __post_init__(self) -> None:
        """Checks what the parts do not check themselves."""
        for name, value, least in (
            ("num_boards", self.num_boards, 1),
            ("board_seed", self.board_seed, 0),
            ("max_steps", self.max_steps, 1),
        ):
            if value is not None and (isinstance(value, bool) or not isinstance(value, int) or value < least):
                raise BathysphereError(f"Sokoban's {name} must be a whole number from {least}; got {value!r}.")
        if self.level_file is not None and self.num_boards is not None:
            raise BathysphereError(
                "Sokoban's boards come from level_file or from the generator (num_boards); got both. Drop one."
            )


@register_domain
class Sokoban:
    """The Sokoban domain. A state is the board: one cell code per byte, row by row, S = height * width."""

    name = "sokoban"
    Config = SokobanConfig
    action_names: tuple[str, ...] = ACTION_NAMES

    def __init__(self, config: SokobanConfig | None = None, levels: Sequence[Level] | None = None) -> None:
        """Collects the levels to draw from: `levels` if given, otherwise what `config` names.

        Raises:
          BathysphereError: for unreadable levels, levels of different sizes without `pad_levels`, or a level
            that is solved from the start.
        """
        self.config = config or SokobanConfig()
        if levels is None and self.config.level_file is not None:
            levels = read_levels(self.config.level_file)
        if levels is None and self.config.num_boards is not None:
            levels = generate(self.config.num_boards, self.config.generator, self.config.board_seed)
        self.levels = None if levels is None else tuple(levels)
        if self.levels is None:
            self.shape = (self.config.generator.height, self.config.generator.width)
        else:
            self.shape = _common_shape(self.levels, self.config.pad_levels)
            self._boards = np.stack([pad(level.grid, self.shape).ravel() for level in self.levels])
            if (solved := rules.is_solved(self._boards)).any():
                number = int(np.argmax(solved))
                raise BathysphereError(
                    f"Level {number + 1} ('{self.levels[number].title}') is already solved: no box is off "
                    "target. Remove it."
                )
        self.state_size = self.shape[0] * self.shape[1]
        self.max_steps = self.config.max_steps
        height, width = self.shape
        self._shown = np.s_[:, :, :] if self.config.show_border else np.s_[:, 1:-1, 1:-1]
        shown = self.shape if self.config.show_border else (height - 2, width - 2)
        self.observation: ObservationSpec = Categories(shown, NUM_CODES, blank=rules.WALL)
        self._symmetries = symmetries(self.shape)

    @property
    def goal_reward(self) -> float:
        """What the move that solves a level pays."""
        return self.config.rewards.finished

    def initial(self, n: int, rng: np.random.Generator) -> States:
        """Draws `n` of the levels uniformly, with replacement, or makes `n` fresh ones."""
        if self.levels is not None:
            return self._boards[rng.integers(len(self._boards), size=n)]
        fresh = generate(n, self.config.generator, int(rng.integers(2**63)))
        return np.array([level.grid for level in fresh], np.uint8).reshape(n, self.state_size)

    def numbered_starts(self, stream: int) -> BoardStream | None:
        """Opens an endless stream of fresh boards; None if there is a fixed set of levels to draw from."""
        return BoardStream(self.config.generator, stream, cache_folder()) if self.levels is None else None

    def successors(self, states: States) -> Successors:
        """Plays all four moves; solved boards stay as they are."""
        return rules.successors(as_rows(states, self.state_size), self.shape, self.config.rewards)

    def relabel(self, states: States, rng: np.random.Generator) -> tuple[States, NDArray[np.float64]]:
        """Hindsight on one unsolved episode, uint8 [T, S]; see `hindsight.relabel`."""
        return hindsight.relabel(as_rows(states, self.state_size), rng, self.config.rewards)

    def observe(self, states: States) -> NDArray[np.uint8]:
        """Returns the cell codes as boards, uint8 [n, height, width], without the border if it is not shown."""
        boards = as_rows(states, self.state_size).reshape(-1, *self.shape)
        return np.ascontiguousarray(boards[self._shown])

    def transform(self, states: States, rng: np.random.Generator) -> tuple[States, NDArray[np.intp]]:
        """Turns and mirrors each board, uint8 [n, S], at random: its solutions turn with it, so its value stays."""
        chosen = rng.integers(len(self._symmetries), size=len(states))
        turned = np.take_along_axis(as_rows(states, self.state_size), self._symmetries[chosen], axis=1)
        return turned, TURNED_ACTIONS[chosen]

    def hopeless(self, states: States) -> NDArray[np.bool_]:
        """Tells which boards, uint8 [n, S], are seen to be lost; see deadlocks.py and lost_sets.py."""
        states = as_rows(states, self.state_size)
        is_lost = deadlocks.hopeless(states, self.shape)
        is_lost[~is_lost] = lost_sets(self.shape).any_lost(states[~is_lost])
        return is_lost

    def render(self, state: States) -> NDArray[np.uint8]:
        """Draws the board with tiles."""
        return draw_board(state.reshape(self.shape))

    @property
    def text_styles(self) -> dict[str, str]:
        """Boxes at home are green, others yellow."""
        return {"#": "bright_black", "[@+]": "bold cyan", r"\$": "bold yellow", r"\*": "bold green", r"\.": "red"}

    def state_maps(self, state: States) -> list[StateMap]:
        """Returns maps of where the player could stand, and of the single pushes that are possible from here."""
        return state_maps(state.reshape(self.shape))

    def places(self, states: States, shown: States) -> NDArray[np.float64]:
        """Returns where in a picture of the board the players are, float64 [n, 2]: shares of height and width."""
        rows, columns = np.divmod((states >= PLAYER).argmax(axis=1), self.shape[1])
        return (np.stack([rows, columns], axis=1) + 0.5) / self.shape

    def text(self, state: States) -> str:
        """Draws the board with XSB characters."""
        return grid_text(state.reshape(self.shape))


def symmetries(shape: tuple[int, int]) -> NDArray[np.intp]:
    """Returns the symmetries of a board: where the cells of its image come from, [8, S], or [4, S] if not square."""
    height, width = shape
    cells = np.arange(height * width).reshape(shape)
    boards = [cells, cells.T] if height == width else [cells]
    return np.stack([flipped.ravel() for b in boards for c in (b, b[::-1]) for flipped in (c, c[:, ::-1])])


def _turned_actions() -> NDArray[np.intp]:
    """Returns which move of a board becomes each move of its image, [8, 4], in the order of `symmetries`."""
    around = np.array([(1 + rows) * 3 + 1 + columns for rows, columns in zip(ROW_STEPS, COLUMN_STEPS, strict=True)])
    return np.array([[np.flatnonzero(around == cell)[0] for cell in image[around]] for image in symmetries((3, 3))])


TURNED_ACTIONS = _turned_actions()


def _common_shape(levels: Sequence[Level], pad_levels: bool) -> tuple[int, int]:
    if not levels:
        raise BathysphereError("Sokoban needs at least one level; the list is empty.")
    shapes = {level.shape for level in levels}
    if len(shapes) > 1 and not pad_levels:
        sizes = ", ".join(f"{height}x{width}" for height, width in sorted(shapes)[:5])
        raise BathysphereError(
            f"The levels have {len(shapes)} different sizes ({sizes}{', ...' if len(shapes) > 5 else ''}), "
            "but states have one. Turn on pad_levels to fill them up with walls, or choose levels "
            "of one size."
        )
    return max(height for height, _ in shapes), max(width for _, width in shapes)
