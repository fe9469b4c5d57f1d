"""MiniGrid's hard levels, with a simulator that can be copied: KeyCorridorS6R3 and obstructed mazes.

python examples/minigrid_worlds.py                  (minutes; --short: KeyCorridorS3R3 in some seconds)
python examples/minigrid_worlds.py --new            (every episode has a new level)
python examples/minigrid_worlds.py --breadth-first  (the same levels without learning)

Reward comes only when the level is done. Methods that learn without a model need millions of frames of many levels for
these. Here the planner may put the environment back into any state it has seen, which is a different and easier
problem, and with one fixed level easier still. So everything is counted in steps of the simulator, those for planning
included, and a breadth-first search with the same copies is the baseline: it needs no learning at all.
"""

import sys
import time
from collections import deque

import gymnasium
import minigrid  # noqa: F401  (makes its ids known)
import numpy as np

import bathysphere

LEVELS = ["KeyCorridorS6R3", "ObstructedMaze-1Dlhb", "ObstructedMaze-2Dlh"]
LIMIT = 1_000_000  # simulator steps for each


class Counting(gymnasium.Wrapper):
    """Counts the steps of all copies together."""

    steps = 0

    def step(self, action):
        """Makes a step, and counts it."""
        Counting.steps += 1
        return self.env.step(action)


def make_world(level: str, seeds: int | None) -> bathysphere.Domain:
    """Returns a level of MiniGrid, the same in every episode if `seeds` is 1."""
    Counting.steps = 0
    return bathysphere.from_gymnasium(lambda: Counting(gymnasium.make(f"MiniGrid-{level}-v0")), seeds=seeds)


def train(level: str, is_new: bool, seed: int = 0) -> str:
    """Trains to the first win, or with new levels until the limit; returns what it took."""
    wins = []

    def count(episode, progress) -> bool:  # True ends the run
        if episode.solved:
            wins.append(Counting.steps)
        return Counting.steps >= LIMIT

    run = bathysphere.train(
        make_world(level, None if is_new else 1),
        seed=seed,
        batch=4 if is_new else 16,
        search={"passes": 10},  # these two are otherwise chosen by how fast the environment is here
        stop={"on_first_win": not is_new, "seconds": 3600},
        on_episode=count,
        pictures=False,
    )
    first = f"first won after {wins[0]:,} simulator steps" if wins else "not won"
    done = f"{Counting.steps:,} simulator steps, {run['env_steps']:,} of them acted"
    return f"{first}; {len(wins)} of {run['episodes']} episodes won in {done}"


def breadth_first(level: str, seconds: float = 1800) -> str:
    """Tries all actions from all states, the nearest first; returns what the first win took.

    Copies that are too many to keep are made again from the start. The steps for that are not counted here.
    """
    world = make_world(level, seeds=1)
    start = world.initial(1, np.random.default_rng(0))
    known, waiting = {start.tobytes()}, deque([(start, 0)])
    steps, length, end = 0, 0, time.monotonic() + seconds
    while waiting and steps < LIMIT and time.monotonic() < end:
        state, length = waiting.popleft()
        out = world.successors(state)
        steps += len(world.action_names)
        if out.solved.any():
            return f"won in {length + 1} actions after {steps:,} simulator steps, {len(known):,} states"
        for child, ended in zip(out.states[0], out.terminal[0], strict=True):
            if not ended and child.tobytes() not in known:
                known.add(child.tobytes())
                waiting.append((child[None], length + 1))
    return f"not won in {length} actions, {steps:,} simulator steps, {len(known):,} states"


def main() -> None:
    """Tries the levels that are named, or all."""
    named = [argument for argument in sys.argv[1:] if not argument.startswith("-")]
    is_new = "--new" in sys.argv
    for level in named or (["KeyCorridorS3R3"] if "--short" in sys.argv else LEVELS):
        way = f"learning, {'new levels' if is_new else 'one level'}"
        if "--breadth-first" in sys.argv:
            print(f"{level}, breadth-first: {breadth_first(level)}", flush=True)
        else:
            print(f"{level}, {way}: {train(level, is_new)}", flush=True)


if __name__ == "__main__":
    main()
