"""Episodes step by step, for pictures and for people: chosen as they go, from given actions, or shortest solutions."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from bathysphere.domains.base import Domain, States
from bathysphere.domains.real_steps import take_steps
from bathysphere.errors import BathysphereError


class _Step(NamedTuple):
    action: int
    state: States  # after it, uint8 [S]
    reward: float
    terminal: bool
    solved: bool


class PlayedEpisode:
    """An episode that grows step by step: T actions and the T + 1 states before and after them.

    Args:
      domain: its rules.
      start: uint8 [S].
      max_steps: where it is cut off; the domain's own limit if not given.
      rng: decides what happens in a world with chance; one with seed 0 if not given.
    """

    def __init__(
        self, domain: Domain, start: States, max_steps: int | None = None, rng: np.random.Generator | None = None
    ) -> None:
        self.domain, self.max_steps = domain, domain.max_steps if max_steps is None else max_steps
        self._rng = np.random.default_rng(0) if rng is None else rng
        self._start, self._steps = start, list[_Step]()
        self._undone: list[_Step] = []  # the one to make again first is the last

    @property
    def actions(self) -> list[int]:
        """Numbers of all actions so far."""
        return [step.action for step in self._steps]

    @property
    def states(self) -> States:
        """All states so far, uint8 [T + 1, S]."""
        return np.stack([self._start, *(step.state for step in self._steps)])

    @property
    def state(self) -> States:
        """The last state, uint8 [S]."""
        return self._steps[-1].state if self._steps else self._start

    @property
    def total_reward(self) -> float:
        """Sum of all rewards so far."""
        return sum((step.reward for step in self._steps), 0.0)

    @property
    def terminal(self) -> bool:
        """Whether the rules ended the episode."""
        return bool(self._steps) and self._steps[-1].terminal

    @property
    def solved(self) -> bool:
        """Whether it is a success."""
        return bool(self._steps) and self._steps[-1].solved

    @property
    def over(self) -> bool:
        """Whether no step can follow: the rules ended the episode, or it is cut off."""
        return self.terminal or len(self._steps) >= self.max_steps

    @property
    def num_undone(self) -> int:
        """How many steps were taken back and can be made again."""
        return len(self._undone)

    @property
    def all_actions(self) -> list[int]:
        """Numbers of all actions so far, and of those that were taken back."""
        return self.actions + [step.action for step in reversed(self._undone)]

    def step(self, action: int) -> None:
        """Takes a step. The caller asks whether the episode is over.

        What was taken back can still be made again if this is how it began.
        """
        made = take_steps(self.domain, self.state[None], np.array([action], np.int32), self._rng)
        (state,), (reward,), (terminal,), (solved,) = made
        self._steps.append(_Step(action, state, float(reward), bool(terminal), bool(solved)))
        before = self._undone.pop() if self._undone else None
        if before is not None and (before.action != action or (before.state != state).any()):
            self._undone.clear()

    def undo(self) -> None:
        """Takes back the last step, if there is one."""
        if self._steps:
            self._undone.append(self._steps.pop())

    def redo(self) -> None:
        """Makes the step again that was taken back last, if there is one; in a world with chance it ends as it did."""
        if self._undone:
            self._steps.append(self._undone.pop())

    def restart(self) -> None:
        """Takes back all steps."""
        while self._steps:
            self.undo()

    def __repr__(self) -> str:
        how = "solved" if self.solved else "ended" if self.terminal else "cut off" if self.over else "going on"
        steps = f"{len(self.actions)} step{'s' * (len(self.actions) != 1)}"
        return f"<PlayedEpisode in {self.domain.name}: {steps}, return {self.total_reward:.4g}, {how}>"

    def to_dict(self) -> dict[str, Any]:
        """Returns how the episode went as plain data, with the names of its actions."""
        return {
            "steps": len(self._steps),
            "reward": self.total_reward,
            "terminal": self.terminal,
            "solved": self.solved,
            "actions": [self.domain.action_names[step.action] for step in self._steps],
        }


def play_episode(
    domain: Domain,
    start: States,
    choose: Callable[[States], int],
    max_steps: int | None = None,
    rng: np.random.Generator | None = None,
) -> PlayedEpisode:
    """Plays from `start`, uint8 [S], what `choose` makes of each state, until the episode is over."""
    episode = PlayedEpisode(domain, start, max_steps, rng)
    while not episode.over:
        episode.step(choose(episode.state))
    return episode


def parse_actions(domain: Domain, text: str) -> list[int]:
    """Reads '0012', or names separated by commas: 'north,east'."""
    names = {name: number for number, name in enumerate(domain.action_names)}
    names |= {str(number): number for number in range(len(names))}
    words = text.split(",") if "," in text or text in names else list(text)
    for word in words:
        if word.strip() not in names:
            raise BathysphereError(
                f"{domain.name} has no action '{word}'. Write digits, or names separated by commas: "
                f"{', '.join(f'{number} {name}' for number, name in enumerate(domain.action_names))}."
            )
    return [names[word.strip()] for word in words]


def shortest_solution(domain: Domain, start: States, max_states: int) -> list[int]:
    """Finds a shortest solution by breadth-first search, a whole frontier at a time.

    Raises:
      BathysphereError: if there is none, or `max_states` states were seen without finding it.
    """
    frontier = start[None]
    seen = {start.tobytes()}
    # For each depth: which row of the frontier before, and which action, led to each row of this one.
    origins: list[list[tuple[int, int]]] = []
    while len(frontier):
        out = domain.successors(frontier)
        if out.solved.any():
            row, action = (int(index) for index in np.argwhere(out.solved)[0])
            solution = [action]
            for origin in reversed(origins):
                row, action = origin[row]
                solution.append(action)
            return solution[::-1]
        rows, origin = [], []
        for row, action in np.argwhere(~out.terminal):
            key = out.states[row, action].tobytes()
            if key not in seen:
                seen.add(key)
                rows.append(out.states[row, action])
                origin.append((int(row), int(action)))
        if len(seen) > max_states:
            raise BathysphereError(
                f"No solution among the first {max_states:,} states. Choose a smaller world or another seed, "
                "or play at random."
            )
        frontier = np.array(rows, np.uint8).reshape(-1, domain.state_size)
        origins.append(origin)
    raise BathysphereError("This start cannot be solved: all states in reach were tried.")
