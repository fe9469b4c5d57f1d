"""Solving levels: all of them together for a moment, then each that is left by itself until its time is over.

Most levels fall within a few hundred expansions, which cost least when many searches share each call of the network. A
level that is left may be unlike all that the network has seen, so half of its time goes to a search over pushes that
needs none; then the network has the rest, with many states expanded at once.
"""

from __future__ import annotations

import math
import time
from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, NamedTuple

from bathysphere.domains.sokoban import Level
from bathysphere.domains.sokoban.levels import solves
from bathysphere.errors import BathysphereError
from bathysphere.planning import BestFirstConfig
from bathysphere.planning.named import named_planner
from bathysphere.puzzles.improving import improve
from bathysphere.puzzles.player import IN_FLIGHT, LevelPlayer, Numbered
from bathysphere.puzzles.pushing import solve_by_pushes

Count = Literal["moves", "pushes"]
Stage = Literal["together", "pushes", "alone", "improve"]

_FIRST_EXPANSIONS = 500  # of a level in the first stage
_NO_LIMIT = 2**31 - 1  # of expansions: time ends a search
_REASONS = {
    "no state left": "has no solution: all that can be reached was searched",
    "max_seconds": "no solution found in its time",
    "max_expansions": "no solution found with so many expansions",
    "memory_limit_mb": "no solution found before memory was full",
    "solution": "its plan failed where the learned model was wrong",
}


@dataclass(frozen=True)
class Effort:
    """What may be spent on every level."""

    seconds: float = 20.0
    """On solving it and, if wanted, improving its solution."""
    max_expansions: int | None = None
    """Of one search; None for as many as there is time for. What is found then depends on the machine."""
    planner: str = "best-first"
    """best-first, levin or phs."""
    width: int = 32
    """States expanded at once in the search of a level by itself."""
    improve: Count | None = None
    """What the rest of the time is to make fewer in the solution; None for nothing."""
    memory_mb: int = BestFirstConfig.memory_limit_mb
    """Megabytes for the searches that go on at the same time, together."""

    def __post_init__(self) -> None:
        if type(named_planner(self.planner)) is not BestFirstConfig:
            raise BathysphereError(
                f"Levels are solved by planners that search for whole plans: best-first, levin and phs; got "
                f"{self.planner}. To see how many levels it solves: bathysphere evaluate --planner {self.planner}"
            )
        if not 0 < self.seconds < math.inf:
            raise BathysphereError(f"seconds is {self.seconds}; expected a number above 0.")
        for name in ("max_expansions", "width"):
            number = getattr(self, name)
            if number is not None and number < 1:
                raise BathysphereError(f"{name} is {number}; expected at least 1.")


@dataclass(frozen=True)
class LevelRecord:
    """What has been done for a level so far."""

    number: int
    """In its file, from 1."""
    title: str
    solution: str | None = None
    """Letters of `lurd`, capitals for pushes; replayed through the rules before it gets here."""
    expansions: int = 0
    states: int = 0
    seconds: float = 0.0
    ended_by: str = ""
    """What ended the search: a solution, or the limit that was reached."""

    @property
    def reason(self) -> str:
        """Why there is no solution, for a person."""
        return _REASONS.get(self.ended_by, self.ended_by)

    def to_dict(self) -> dict[str, Any]:
        """Returns plain data."""
        solution = self.solution
        return {
            "number": self.number,
            "title": self.title,
            "solved": solution is not None,
            "moves": None if solution is None else len(solution),
            "pushes": None if solution is None else sum(map(str.isupper, solution)),
            "expansions": self.expansions,
            "states": self.states,
            "seconds": self.seconds,
            "ended_by": self.ended_by,
            "solution": solution,
        }


class Task(NamedTuple):
    """Work that is done in one piece."""

    stage: Stage
    levels: list[Numbered]  # one, except in the stage together
    seconds: float  # for each of them
    solution: str | None = None  # to be improved


class Done(NamedTuple):
    """What a task did for one level."""

    number: int
    seconds: float
    solution: str | None
    expansions: int = 0
    states: int = 0
    ended_by: str = "solution"


class Solver:
    """Does tasks.

    Args:
      player: the agent.
      effort: what may be spent.
    """

    def __init__(self, player: LevelPlayer, effort: Effort) -> None:
        self._player, self._effort = player, effort

    def run(self, task: Task) -> Iterator[Done]:
        """Yields what was done for each level of a task, as soon as it is."""
        if task.stage == "improve":
            yield self._improve(task)
            return
        missing = {number for number, _ in task.levels}
        try:
            for done in [self._push(task)] if task.stage == "pushes" else self._search(task):
                missing.remove(done.number)
                yield done
        except MemoryError:  # of boards so large that there is no room for the first states
            for number in sorted(missing):
                yield Done(number, 0.0, None, ended_by="memory_limit_mb")

    def _search(self, task: Task) -> Iterator[Done]:
        effort, is_alone = self._effort, task.stage == "alone"
        most = effort.max_expansions or _NO_LIMIT
        search = self._player.settings(
            effort.planner,
            max_expansions=most if is_alone else min(most, _FIRST_EXPANSIONS),
            max_seconds=task.seconds * min(len(task.levels), IN_FLIGHT),  # each search waits for the others in a round
            width=effort.width if is_alone else 1,
            memory_limit_mb=effort.memory_mb,
        )
        for r in self._player.play(task.levels, search):
            yield Done(r.number, r.seconds, r.solution, r.expansions, r.states, r.ended_by)

    def _push(self, task: Task) -> Done:
        ((number, level),) = task.levels
        began, effort = time.perf_counter(), self._effort
        found = solve_by_pushes(level, task.seconds, effort.memory_mb, effort.max_expansions)
        seconds = min(time.perf_counter() - began, task.seconds)  # compiling is not the level's
        return Done(number, seconds, found.solution, found.expansions, found.positions, found.ended_by)

    def _improve(self, task: Task) -> Done:
        ((number, level),) = task.levels
        assert task.solution is not None
        assert self._effort.improve is not None
        began = time.perf_counter()
        better = improve(level, task.solution, task.seconds, self._effort.improve)
        seconds = time.perf_counter() - began
        return Done(number, seconds, better if solves(level, better) else task.solution)


class Solving:
    """How far the work on some levels is, and what is to be done next.

    Args:
      player: the agent; at least one of the levels must be one that it can play.
      levels: all of a file.
      effort: what may be spent on each.
      shares: into how many tasks the first stage is divided.
    """

    def __init__(self, player: LevelPlayer, levels: Sequence[Level], effort: Effort, shares: int = 1) -> None:
        refusals = ((number, player.refusal(level)) for number, level in enumerate(levels, 1))
        self.levels, self.effort = levels, effort
        player.settings(effort.planner)  # refuses a planner that is not for this agent
        self.refused = {number: reason for number, reason in refusals if reason is not None}
        """Why the agent cannot play a level, by its number from 1."""
        if len(self.refused) == len(levels):
            number, reason = next(iter(self.refused.items()))
            title = levels[number - 1].title
            raise BathysphereError(
                f"The agent can play none of the {len(levels)} levels: level {number} ('{title}') {reason}."
            )
        self.records = {
            number: LevelRecord(number, level.title)
            for number, level in enumerate(levels, 1)
            if number not in self.refused
        }
        self.failures: list[str] = []
        """Sentences about processes that ended unexpectedly."""
        self._open = set(self.records)  # levels for which more will be done
        tried = [(number, levels[number - 1]) for number in self.records]
        tasks = (Task("together", tried[share::shares], effort.seconds) for share in range(shares))
        self._to_solve = deque(task for task in tasks if task.levels)
        self._to_improve = deque[Task]()

    @property
    def solutions(self) -> dict[int, str]:
        """What was found, by number of the level."""
        return {number: record.solution for number, record in self.records.items() if record.solution is not None}

    @property
    def num_finished(self) -> int:
        """Levels for which nothing more will be done."""
        return len(self.levels) - len(self._open)

    def next_task(self) -> Task | None:
        """Returns the next task, which is then taken for being done; None if there is none now."""
        for tasks in (self._to_solve, self._to_improve):
            if tasks:
                return tasks.popleft()
        return None

    def note(self, task: Task, done: Done) -> None:
        """Takes down what a task did for a level, and plans what is to be done next for it."""
        before = self.records[done.number]
        record = replace(
            before,
            solution=done.solution,
            expansions=before.expansions + done.expansions,
            states=before.states + done.states,
            seconds=before.seconds + done.seconds,
            ended_by=done.ended_by,
        )
        left = self.effort.seconds - record.seconds
        is_searched = task.stage == "alone" or done.ended_by == "no state left"
        is_searched |= (self.effort.max_expansions or _NO_LIMIT) <= _FIRST_EXPANSIONS
        numbered = [(done.number, self.levels[done.number - 1])]
        if record.solution is None and not is_searched and left <= 0:
            record = replace(record, ended_by="max_seconds")
        self.records[done.number] = record
        if record.solution is None and not is_searched and left > 0:
            following = (
                Task("pushes", numbered, left / 2) if task.stage == "together" else Task("alone", numbered, left)
            )
            self._to_solve.append(following)
        elif record.solution is not None and task.stage != "improve" and self.effort.improve and left > 0:
            self._to_improve.append(Task("improve", numbered, left, record.solution))
        else:
            self._open.discard(done.number)

    def give_up(self, task: Task, done: set[int], why: str) -> None:
        """Takes down that a task will not be done, except for the levels that are.

        Args:
          task: the work.
          done: numbers of the levels that were noted.
          why: as the end of a sentence about a level.
        """
        for number in {number for number, _ in task.levels} - done:
            self._open.discard(number)
            if self.records[number].solution is None:
                self.records[number] = replace(self.records[number], ended_by=why)

    def summary(self) -> dict[str, Any]:
        """Returns all of it as plain data."""
        reasons = {number: record.reason for number, record in self.records.items() if record.solution is None}
        return {
            "levels": len(self.levels),
            "solved": len(self.solutions),
            "unsolved": [
                {"number": number, "title": self.levels[number - 1].title, "reason": reason}
                for number, reason in sorted((self.refused | reasons).items())
            ],
            "failures": self.failures,
            "results": [record.to_dict() for record in self.records.values()],
        }
