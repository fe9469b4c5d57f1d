"""Episodes for pictures: played at random, from given actions, or along a shortest solution."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from bathysphere.domains.base import Domain, States
from bathysphere.errors import BathysphereError


@dataclass(frozen=True)
class PlayedEpisode:
    """One episode: T actions and the T + 1 states before and after them."""

    states: States  # uint8 [T + 1, S]
    actions: list[int]
    total_reward: float
    terminal: bool
    solved: bool


def play(domain: Domain, start: States, choose: Callable[[States], int], max_steps: int) -> PlayedEpisode:
    """Plays from `start`, uint8 [S], what `choose` makes of each state, until the episode ends or `max_steps`."""
    states, total = [start], 0.0
    actions: list[int] = []
    terminal = solved = False
    while not terminal and len(actions) < max_steps:
        action = choose(states[-1])
        out = domain.successors(states[-1][None])
        states.append(out.states[0, action])
        actions.append(action)
        total += float(out.rewards[0, action])
        terminal, solved = bool(out.terminal[0, action]), bool(out.solved[0, action])
    return PlayedEpisode(np.stack(states), actions, total, terminal, solved)


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
