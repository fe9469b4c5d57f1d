"""How often each outcome of an action came: what chances are estimated from."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

Outcome = tuple[bytes, bool, bool]  # the state it leads to, and whether that is an end, and solves


class Count(NamedTuple):
    """An outcome, how often it came, and what it paid in all."""

    times: int
    reward: float


Counts = dict[Outcome, Count]  # of one action in one state, in the order in which they first came


def add(counts: Counts, outcome: Outcome, reward: float) -> None:
    """Counts an outcome once more."""
    times, paid = counts.get(outcome, (0, 0.0))
    counts[outcome] = Count(times + 1, paid + reward)


def most_frequent(counts: Counts, most: int) -> list[tuple[Outcome, Count]]:
    """Returns at most so many outcomes; of equally frequent ones, those that came first."""
    return sorted(counts.items(), key=lambda item: -item[1].times)[:most]  # the sort is stable


def write(out: Any, place: tuple[int, ...], outcome: Outcome, count: Count) -> None:
    """Enters an outcome into arrays of `Successors` or `Outcomes`, with its mean reward. Mutates: out."""
    out.states[place] = np.frombuffer(outcome[0], np.uint8)
    out.rewards[place] = count.reward / count.times
    out.terminal[place], out.solved[place] = outcome[1:]
