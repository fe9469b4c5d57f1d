"""An agent at Sokoban levels: which it can play, and how it plays them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from bathysphere.agents.evaluation import make_pool
from bathysphere.agents.loading import load_trained
from bathysphere.domains.base import Categories
from bathysphere.domains.sokoban import Level, Sokoban, SokobanConfig
from bathysphere.domains.sokoban.levels import checked_solution, pad, solves
from bathysphere.errors import BathysphereError
from bathysphere.planning import SearchConfig
from bathysphere.planning.graph.arena import Sizes, arena_bytes

_MEMORY = 2 << 30  # bytes that the search graphs of all levels at once may come to


@dataclass(frozen=True)
class LevelResult:
    """How one level went."""

    number: int
    """In its file, from 1."""
    title: str
    solved: bool
    moves: int
    """Played, whether they solve it or not."""
    waits: int
    """Of the moves: spent on planning, to put off one that cannot be taken back."""
    solution: str | None
    """Letters of `lurd`, capitals for pushes; replayed through the rules before it gets here."""
    states: int
    """Distinct states that were generated, each evaluated by the network."""
    expansions: int
    """Nodes of the search tree that got children."""
    model_calls: int
    """States whose successors were computed: the graph knew those of the other expansions."""


class LevelPlayer:
    """An agent that plays given levels.

    Args:
      agent: name of a shipped agent, agent file, or run directory.
    """

    def __init__(self, agent: str | Path) -> None:
        self.agent = str(agent)
        self.trained = load_trained(agent)
        config, observation = self.trained.config.domain, self.trained.observation
        if not isinstance(config, SokobanConfig) or not isinstance(observation, Categories):
            raise BathysphereError(f"{agent} was not trained in Sokoban, so it cannot play Sokoban levels.")
        self.max_steps = config.max_steps  # unless the search config has another limit
        self._domain = replace(config, level_file=None, num_boards=None)
        height, width = observation.shape
        hidden = 0 if config.show_border else 2
        self.shape = (height + hidden, width + hidden)

    def refusal(self, level: Level) -> str | None:
        """Says why a level cannot be played, as the end of a sentence about it; None if it can."""
        (height, width), (most_rows, most_columns) = level.shape, self.shape
        if height > most_rows or width > most_columns:
            return f"has {height}x{width} cells, and the agent knows boards of {most_rows}x{most_columns} at most"
        return "is solved from the start: no box is off target" if solves(level, "") else None

    def play(self, levels: Sequence[tuple[int, Level]], search: SearchConfig, seed: int = 0) -> Iterator[LevelResult]:
        """Plays every level once, without learning; yields each when it is over.

        Smaller levels are surrounded with walls.

        Args:
          levels: numbers and levels; none that `refusal` gives a reason for.
          search: how to plan.
          seed: decides ties and the members drawn.
        """
        boards = [replace(level, grid=pad(level.grid, self.shape)) for _, level in levels]
        domain = Sokoban(self._domain, levels=boards)
        pool = make_pool(
            self.trained,
            domain,
            search,
            episodes=len(levels),
            seed=seed,
            batch=_affordable(domain, self.trained.config.values.num_members, search),
            starts=np.stack([board.grid.ravel() for board in boards]),
        )
        while pool.num_active:
            for episode in pool.step():
                number, level = levels[episode.index]
                solution = checked_solution(level, episode.actions.tolist()) if episode.solved else None
                yield LevelResult(
                    number=number,
                    title=level.title,
                    solved=solution is not None,
                    moves=len(episode),
                    waits=episode.num_waits,
                    solution=solution,
                    states=episode.num_states,
                    expansions=episode.num_expansions,
                    model_calls=episode.num_model_calls,
                )


def _affordable(domain: Sokoban, num_members: int, search: SearchConfig) -> int:
    """Returns how many levels can be played at once even if the search graph of each gets as large as it can."""
    steps, num_actions = search.max_steps or domain.max_steps, len(domain.action_names)
    drawn = search.num_subsampled or num_members
    sizes = Sizes(1, domain.state_size, num_actions, num_members, drawn, steps)
    most = search.passes * steps * num_actions
    room = 1 << most.bit_length()
    return max(_MEMORY // arena_bytes(sizes, room, room), 1)
