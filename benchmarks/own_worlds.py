"""What a world of one's own costs: Numba beside a built-in world, and one state at a time beside its own function.

python benchmarks/own_worlds.py [repeats]      (about a minute)

Both are ratios of processor time, measured in turn in one process; printed are the median and the extremes:

- planning in Deep-sea as a user would write it with Numba, over planning in ours, with the same planner and the same
  plans. It should be within 20%;
- successors of worlds written one state at a time through `from_steps`, 16 states at once, over calling `step` for the
  same states and actions in a loop, whose results are thrown away: Lights Out on 5 x 5 lamps, and the sliding tiles of
  examples/sliding_tiles.py, whose step is as cheap as they come. The adapter should add at most 30%.
"""

from __future__ import annotations

import statistics
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from numba import njit
from numpy.typing import NDArray

import bathysphere
from bathysphere.domains import DeepSea, DeepSeaConfig, Domain
from bathysphere.domains.base import Categories, States, Successors
from bathysphere.planning.pool import Pool

sys.path.insert(0, str(Path(__file__).parents[1] / "examples"))
from sliding_tiles import SlidingTiles

SIZE = 20


@njit
def sink(states, steers, last, cost, after, rewards, terminal, solved):  # type: ignore[no-untyped-def]
    """Writes where both actions lead from each state."""
    for i in range(len(states)):
        row, column = states[i, 0], states[i, 1]
        for action in range(2):
            right = steers[row, column] != action
            after[i, action, 0], after[i, action, 1] = row, column
            rewards[i, action] = 0.0
            if row < last:
                after[i, action, 0] = row + 1
                after[i, action, 1] = column + 1 if right else max(column, 1) - 1
                is_solved = after[i, action, 1] == last
                rewards[i, action] = 1.0 if is_solved else -cost if right else 0.0
            terminal[i, action] = after[i, action, 0] == last
            solved[i, action] = terminal[i, action] and after[i, action, 1] == last


class OwnDeepSea:
    """Deep-sea as a user would write it: a state is two bytes, row and column."""

    name, state_size, action_names, max_steps = "own-deep-sea", 2, ("action-0", "action-1"), SIZE - 1
    observation = Categories((1,), SIZE * SIZE)

    def __init__(self, steers: NDArray[np.bool_]) -> None:
        self.steers = steers.astype(np.int64)

    def initial(self, n: int, rng: np.random.Generator) -> States:
        """Returns the top left corner n times."""
        return np.zeros((n, 2), np.uint8)

    def successors(self, states: States) -> Successors:
        """Returns where both actions lead."""
        out = Successors.empty(len(states), 2, 2)
        sink(states, self.steers, SIZE - 1, 0.01 / (SIZE - 1), *out)
        return out

    def observe(self, states: States) -> NDArray[np.int32]:
        """Returns the number of each cell."""
        cells = states.astype(np.int32)
        return cells[:, :1] * SIZE + cells[:, 1:]


class LightsOut:
    """Lights Out one state at a time: a press switches a lamp and its neighbours, and dark is the goal."""

    actions = 25

    def start(self, rng: np.random.Generator) -> tuple[int, ...]:
        """Returns a board after a few presses."""
        board = (0,) * 25
        for action in rng.integers(25, size=6).tolist():
            board = self.step(board, action)[0]
        return board

    def step(self, board: tuple[int, ...], action: int) -> tuple[tuple[int, ...], float, bool]:
        """Returns the next board, the reward, and whether all is dark."""
        after = tuple(lamp ^ (abs(k // 5 - action // 5) + abs(k % 5 - action % 5) <= 1) for k, lamp in enumerate(board))
        return after, float(not any(after)), not any(after)


class Zeros:
    """Values that cost nothing, so that what is measured is the planner and the world."""

    num_members = 4

    def evaluate(self, observations: NDArray[np.generic]) -> NDArray[np.float32]:
        """Returns float32 [n, 4]."""
        return np.zeros((len(observations), self.num_members), np.float32)


def main() -> None:
    """Measures and prints both."""
    repeats = int(sys.argv[1]) if len(sys.argv) > 1 else 15
    ours = DeepSea(DeepSeaConfig(size=SIZE))
    own, built_in = planning(OwnDeepSea(ours.mask)), planning(ours)
    say("planning in a Numba world of one's own, over the built-in one", [own() / built_in() for _ in range(repeats)])
    for world in (LightsOut(), SlidingTiles()):
        adapter, function = per_state(world)
        ratios = [adapter() / function() for _ in range(repeats)]
        say(f"{type(world).__name__} through from_steps, over calling step ({function() * 1e6:.2g} µs a step)", ratios)


def planning(domain: Domain) -> Callable[[], float]:
    """Returns a function that plans 190 steps in 64 episodes and returns the seconds of it."""
    pool = Pool(domain, Zeros(), bathysphere.SearchConfig(passes=10), batch=64, workers=1)
    pool.step(2 * domain.max_steps)  # compiles, and lets the arenas grow

    def measure() -> float:
        began = time.process_time()
        pool.step(10 * domain.max_steps)
        return time.process_time() - began

    return measure


def per_state(world: Any) -> tuple[Callable[[], float], Callable[[], float]]:
    """Returns functions that take the seconds per step of the adapter and of the world's own function."""
    domain = bathysphere.from_steps(world)
    states = met(domain, 2000)
    objects, actions = domain.objects(states), range(25) if world.actions == 25 else world.actions
    num_steps = len(states) * len(domain.action_names)

    def adapter() -> float:
        domain.forget()  # on a slow machine the world counts as slow, and what it answers is remembered
        began = time.process_time()
        for first in range(0, len(states), 16):
            domain.successors(states[first : first + 16])
        return (time.process_time() - began) / num_steps

    def function() -> float:
        began = time.process_time()
        for board in objects:
            for action in actions:
                world.step(board, action)
        return (time.process_time() - began) / num_steps

    return adapter, function


def met(domain: Domain, count: int) -> States:
    """Returns different states of random walks, uint8 [count, S]."""
    rng = np.random.default_rng(0)
    states, seen = domain.initial(16, rng), list[States]()
    while sum(map(len, seen)) < count:
        seen.append(states)
        actions = rng.integers(len(domain.action_names), size=len(states))
        states = domain.successors(states).states[np.arange(len(states)), actions]
    return np.concatenate(seen)[:count]


def say(what: str, ratios: list[float]) -> None:
    """Prints a median with the smallest and largest."""
    median = statistics.median(ratios)
    sys.stdout.write(f"{what}: {median:.2f} ({min(ratios):.2f} to {max(ratios):.2f}, {len(ratios)} times)\n")


if __name__ == "__main__":
    main()
