"""Solving levels, harder and harder."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any

from bathysphere.agents.evaluation import given
from bathysphere.domains.sokoban import Level
from bathysphere.errors import BathysphereError
from bathysphere.puzzles.evaluation import Track
from bathysphere.puzzles.player import LevelPlayer, LevelResult

HARDER = 5  # times the passes of the attempt before


@dataclass(frozen=True)
class Attempt:
    """One go at the levels that are still unsolved."""

    passes: int
    levels: int
    solved: int
    seconds: float


@dataclass
class Solving:
    """How far the work on some levels is."""

    levels: Sequence[Level]
    refused: dict[int, str]
    """Why the agent cannot play a level, by its number from 1."""
    results: dict[int, LevelResult] = field(default_factory=dict)
    """The latest of every level that was played."""
    attempts: list[Attempt] = field(default_factory=list)

    @property
    def solutions(self) -> dict[int, str]:
        """What was found, by number of the level."""
        return {n: r.solution for n, r in sorted(self.results.items()) if r.solution is not None}

    @property
    def unsolved(self) -> list[int]:
        """Numbers of the levels without a solution."""
        return [number for number in range(1, len(self.levels) + 1) if number not in self.solutions]

    def summary(self) -> dict[str, Any]:
        """Returns all of it as plain data."""
        return {
            "levels": len(self.levels),
            "solved": len(self.solutions),
            "unsolved": [
                {
                    "number": number,
                    "title": self.levels[number - 1].title,
                    "reason": self.refused.get(number, "no solution found"),
                }
                for number in self.unsolved
            ],
            "attempts": [asdict(attempt) for attempt in self.attempts],
            "results": [asdict(result) for _, result in sorted(self.results.items())],
        }


def schedule(first: int, most: int) -> list[int]:
    """Returns the passes of each attempt.

    >>> schedule(10, 200)
    [10, 50, 200]
    """
    if not 1 <= first <= most:
        raise BathysphereError(f"Expected passes from 1, and max-passes no less; got {first} and {most}.")
    passes = [first]
    while passes[-1] < most:
        passes.append(min(passes[-1] * HARDER, most))
    return passes


def begin(player: LevelPlayer, levels: Sequence[Level]) -> Solving:
    """Looks at all levels before any is played; at least one must be one that the agent can play."""
    refusals = ((number, player.refusal(level)) for number, level in enumerate(levels, 1))
    refused = {number: reason for number, reason in refusals if reason is not None}
    if len(refused) == len(levels):
        number, reason = next(iter(refused.items()))
        title = levels[number - 1].title
        raise BathysphereError(
            f"The agent can play none of the {len(levels)} levels: level {number} ('{title}') {reason}."
        )
    return Solving(levels, refused)


def attempt(
    player: LevelPlayer,
    solving: Solving,
    passes: int,
    seed: int,
    track: Callable[[str, int], Track],
    **search: Any,
) -> Attempt:
    """Plays every level that is still unsolved once more. Mutates: solving, level by level.

    Args:
      player: the agent.
      solving: what is solved so far.
      passes: of planning per step.
      seed: decides ties and the members drawn.
      track: makes, of a label and a number of levels, what passes on the results as they come.
      **search: further fields of the search config to change; those that are None stay as in training.
    """
    tried = [(n, solving.levels[n - 1]) for n in solving.unsolved if n not in solving.refused]
    config = replace(player.trained.config.search, **given({**search, "passes": passes}))
    began, before = time.perf_counter(), len(solving.solutions)
    if tried:
        for result in track(f"{passes} passes", len(tried))(player.play(tried, config, seed)):
            solving.results[result.number] = result
    made = Attempt(passes, len(tried), len(solving.solutions) - before, time.perf_counter() - began)
    solving.attempts.append(made)
    return made
