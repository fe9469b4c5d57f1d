"""Deep-sea: a diver sinks one row per step and finds the treasure only by steering right every single time.

Which of the two actions steers right differs from cell to cell (a fixed random mask), every step to the
right costs a little, and the only reward lies in the far corner, so undirected exploration needs about 2^N
episodes.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numba import njit
from numpy.typing import NDArray

from bathysphere.domains.base import (
    Categories,
    CompiledRules,
    DomainConfig,
    ObservationSpec,
    StateMap,
    States,
    Successors,
    as_rows,
)
from bathysphere.domains.deep_sea.picture import draw_dive
from bathysphere.domains.deep_sea.uncertainty import MAX_SIDE, UncertaintyMaps
from bathysphere.domains.observing import Observer
from bathysphere.domains.registry import register_domain
from bathysphere.errors import BathysphereError

MAX_SIZE = 10_000  # the mask takes size * size bytes


@dataclass(frozen=True)
class DeepSeaConfig(DomainConfig):
    """Which Deep-sea to dive in."""

    size: int = 10
    """N, the side of the grid, 2 to 10000 cells."""
    mask_seed: int = 0
    """Seed of the mask that says, per cell, which action steers right. The authors use 0 in all runs."""
    horizon: Literal["code", "paper"] = "code"
    """code: N-1 steps, a step right costs 0.01/(N-1), the solving step pays 1. paper: N steps, a step right
    costs 0.01/N, the solving one too, and pays 1."""

    def __post_init__(self) -> None:
        """Checks every field."""
        if isinstance(self.size, bool) or not isinstance(self.size, int) or not 2 <= self.size <= MAX_SIZE:
            raise BathysphereError(
                f"Deep-sea's size must be a whole number from 2 to {MAX_SIZE}; got {self.size!r}. Try 10."
            )
        if not isinstance(self.mask_seed, int) or not 0 <= self.mask_seed < 2**32:
            raise BathysphereError(
                f"Deep-sea's mask_seed must be a whole number from 0 to 2^32 - 1; got {self.mask_seed!r}."
            )
        if self.horizon not in ("code", "paper"):
            raise BathysphereError(f"Deep-sea's horizon must be 'code' or 'paper'; got {self.horizon!r}.")


@register_domain
class DeepSea:
    """The Deep-sea domain. A state is row y and column x, each a little-endian uint16: S = 4.

    A dive takes `max_steps` = H steps, so the diver visits cells of an (H+1) x (H+1) grid: N x N with the
    "code" horizon, and with "paper" one more row and column, because there the treasure is at position (N,
    N), counting from 0. Observations number the cells of that grid, `y * (H+1) + x`. The mask is N x N in
    both readings: its last row and column decide nothing in the "code" one.
    """

    name = "deep-sea"
    Config = DeepSeaConfig
    state_size = 4
    action_names: tuple[str, ...] = ("action-0", "action-1")

    def __init__(self, config: DeepSeaConfig | None = None) -> None:
        self.config = config or DeepSeaConfig()
        size = self.config.size
        self.mask: NDArray[np.bool_] = np.random.RandomState(self.config.mask_seed).rand(size, size) > 0.5
        self.max_steps = size - 1 if self.config.horizon == "code" else size
        self.step_cost = 0.01 / self.max_steps
        self.solving_reward = 1.0 if self.config.horizon == "code" else 1.0 - self.step_cost
        self._numbers = np.array([self.max_steps, size, self.step_cost, self.solving_reward])
        self.observation: ObservationSpec = Categories((1,), (self.max_steps + 1) ** 2)

    def initial(self, n: int, rng: np.random.Generator) -> States:
        """Returns `n` times the top left corner. Nothing is random."""
        return np.zeros((n, self.state_size), np.uint8)

    def successors(self, states: States) -> Successors:
        """Sinks one row for each action; a finished dive stays where it is and earns nothing."""
        rows = as_rows(states, self.state_size)
        out = Successors.empty(len(rows), len(self.action_names), self.state_size)
        _sink(self._numbers, self._mask_cells, rows, *out)
        return out

    @property
    def _mask_cells(self) -> NDArray[np.uint8]:
        return self.mask.view(np.uint8).ravel()

    def compiled_rules(self) -> CompiledRules:
        """Returns the rules for one diver, as the planner's kernels call them."""
        return CompiledRules(_sink_one, _cell, self._numbers, self._mask_cells)

    def observe(self, states: States) -> NDArray[np.int32]:
        """Returns the number of each diver's cell, int32 [n, 1]."""
        y, x = self.cells(states)
        return (y * (self.max_steps + 1) + x)[:, None]

    def cells(self, states: States) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
        """Returns row y and column x of each diver, int32 [n] each."""
        cells = as_rows(states, self.state_size).view("<u2").astype(np.int32)
        return cells[:, 0], cells[:, 1]

    def render(self, state: States) -> NDArray[np.uint8]:
        """Draws the sea, the diver and the treasure."""
        return self.render_episode(state[None])

    def render_episode(self, states: States) -> NDArray[np.uint8]:
        """Draws a whole dive, uint8 [T, S], as one picture: its path, and the diver at the end of it."""
        y, x = self.cells(states)
        return draw_dive(self.max_steps + 1, y, x)

    def observers(self, evaluate: Callable[[States], NDArray[np.float32]]) -> list[Observer]:
        """Returns the maps of what the ensemble does not know."""
        return [UncertaintyMaps(self.max_steps + 1, evaluate)]

    @property
    def text_styles(self) -> dict[str, str]:
        """The diver and the treasure shine."""
        return {r"\.": "blue", r"\bo\b": "bold yellow", r"\$": "bold green"}

    @property
    def hint(self) -> str:
        """A sentence for people who play."""
        return (
            "Which action steers right differs from cell to cell, so → may steer left: that is what has to be learnt."
        )

    def state_maps(self, state: States) -> list[StateMap]:
        """Returns the map of all cells from which a dive goes on; of large seas none."""
        side = self.max_steps + 1
        if side > MAX_SIDE:
            return []
        rows, columns = np.nonzero(np.tri(side, dtype=np.bool_)[:-1])
        cells = np.stack([rows, columns], axis=1)
        states = np.ascontiguousarray(cells.astype("<u2")).view(np.uint8)
        return [StateMap("diver", states, cells.astype(np.float64), (side, side))]

    def places(self, states: States, shown: States) -> NDArray[np.float64]:
        """Returns where in the picture of the sea the divers are, float64 [n, 2]: shares of height and width."""
        return (np.stack(self.cells(states), axis=1) + 0.5) / (self.max_steps + 1)

    def text(self, state: States) -> str:
        """Draws the cells a dive can reach as dots, the diver as `o` and the treasure as `$`."""
        (y,), (x,) = self.cells(state[None])
        side = self.max_steps + 1
        lines = [["."] * (row + 1) for row in range(side)]
        lines[-1][-1] = "$"
        lines[y][x] = "o"
        return "\n".join(" ".join(line) for line in lines) + f"\nrow {y} of {side - 1}, column {x}"


def _sink_one(numbers, mask, state, states, rewards, terminal, solved):  # type: ignore[no-untyped-def]
    """Moves one diver under both actions.

    Invariant: x <= y <= horizon, so the mask has a cell for (y, x) whenever the diver still moves; a state that breaks
    it does not move.

    Mutates: states [2, 4], rewards, terminal and solved [2], every entry.
    """
    horizon, size, step_cost, solving_reward = np.int64(numbers[0]), np.int64(numbers[1]), numbers[2], numbers[3]
    y = state[0] + 256 * np.int64(state[1])
    x = state[2] + 256 * np.int64(state[3])
    moving = x <= y < horizon
    for action in range(2):
        next_y, next_x, reward = y, x, 0.0
        if moving:
            next_y = y + 1
            if action + mask[y * size + x] == 1:
                next_x = x + 1
                reward = -step_cost
            else:
                next_x = max(0, x - 1)
        terminal[action] = next_y >= horizon
        solved[action] = next_y == horizon and next_x == horizon
        if moving and solved[action]:
            reward = solving_reward
        rewards[action] = reward
        states[action, 0] = next_y & 255
        states[action, 1] = next_y >> 8
        states[action, 2] = next_x & 255
        states[action, 3] = next_x >> 8


def _cell(numbers, mask, state):  # type: ignore[no-untyped-def]
    """Returns the number of one diver's cell."""
    y = state[0] + 256 * np.int64(state[1])
    x = state[2] + 256 * np.int64(state[3])
    return y * (np.int64(numbers[0]) + 1) + x


_sink_one_of_many = njit(cache=True, nogil=True)(_sink_one)


@njit(cache=True, nogil=True)
def _sink(numbers, mask, rows, states, rewards, terminal, solved) -> None:  # type: ignore[no-untyped-def]
    """Moves every diver under both actions. Mutates: states [n, 2, 4], rewards, terminal and solved [n, 2]."""
    for i in range(rows.shape[0]):
        _sink_one_of_many(numbers, mask, rows[i], states[i], rewards[i], terminal[i], solved[i])
