"""An agent at Sokoban levels: which it can play, and how it plays them."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from bathysphere.agents.evaluation import given, make_pool
from bathysphere.agents.loading import load_trained
from bathysphere.domains.base import Categories
from bathysphere.domains.sokoban import Level, Sokoban, SokobanConfig
from bathysphere.domains.sokoban.levels import checked_solution, pad, solves
from bathysphere.errors import BathysphereError
from bathysphere.planning import BestFirstConfig, Episode, PlannerSettings, Pool, SearchConfig
from bathysphere.planning.best_first.orders import find_order
from bathysphere.planning.best_first.store import StoreSizes
from bathysphere.planning.graph.arena import Sizes, arena_bytes
from bathysphere.planning.named import changed_planner

Numbered = tuple[int, Level]  # with its number in the file, from 1

_MEMORY = 2 << 30  # bytes that the search graphs of all levels at once may come to
_MAX_PLAN = 10_000  # moves of a plan: levels made by people may need more than a thousand
IN_FLIGHT = 64  # searches for plans at once; more make the network hardly faster
_STATES_PER_EXPANSION = 2  # of a long search; half of it is usual
_CELLS_AT_ONCE = 1 << 22  # of boards that the network sees together: half a gigabyte with 32 channels
_SMALL, _WASTE = 256, 2  # boards share a size of so many cells, or of so many times the cells of the smallest one


@dataclass(frozen=True)
class LevelResult:
    """How one level went."""

    number: int
    """In its file, from 1."""
    title: str
    solved: bool
    moves: int
    """Played or planned, whether they solve it or not."""
    waits: int
    """Of the moves: spent on planning, to put off one that cannot be taken back."""
    solution: str | None
    """Letters of `lurd`, capitals for pushes; replayed through the rules before it gets here."""
    states: int
    """Distinct states that were generated, each evaluated by the network unless it was seen to be hopeless."""
    expansions: int
    """Nodes of the search tree that got children."""
    model_calls: int
    """States whose successors were computed: the graph knew those of the other expansions."""
    seconds: float
    """Its share of the time, of which all levels that are played at once have the same."""
    ended_by: str
    """A solution, or the limit that was reached."""


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
        self.max_steps = config.max_steps  # unless the planner's settings have another limit
        self._domain = replace(config, level_file=None, num_boards=None)
        height, width = observation.shape
        hidden = 0 if config.show_border else 2
        self.shape: tuple[int, int] | None = (height + hidden, width + hidden)  # of the boards it knows; None for all
        if self.trained.config.values.network == "board":
            self.shape = None

    def refusal(self, level: Level) -> str | None:
        """Says why a level cannot be played, as the end of a sentence about it; None if it can."""
        (height, width), (most_rows, most_columns) = level.shape, self.shape or level.shape
        if height > most_rows or width > most_columns:
            return f"has {height}x{width} cells, and the agent knows boards of {most_rows}x{most_columns} at most"
        return "is solved from the start: no box is off target" if solves(level, "") else None

    def settings(self, planner: str | None = None, **changes: Any) -> PlannerSettings:
        """Returns how to plan.

        Args:
          planner: mcts, best-first, levin, phs or none; as in training if not given.
          **changes: what else to change; what is None stays as it is.
        """
        config = changed_planner(self.trained.config.search, planner, given(changes))
        if not isinstance(config, BestFirstConfig):
            return config
        if find_order(config.order).needs_policy and not self.trained.values.has_policy:
            raise BathysphereError(
                f"{config.order} is guided by a policy, and {self.agent} has none. Use best-first, or an agent trained "
                "with values.policy."
            )
        return config if config.max_steps else replace(config, max_steps=_MAX_PLAN)

    def play(self, levels: Sequence[Numbered], search: PlannerSettings, seed: int = 0) -> Iterator[LevelResult]:
        """Plays every level once, without learning; yields each when it is over.

        Smaller levels are surrounded with walls. If the agent knows boards of all sizes, those of similar sizes are
        played together.

        Args:
          levels: numbers and levels; none that `refusal` gives a reason for.
          search: how to plan.
          seed: decides ties and the members drawn.
        """
        groups = [list(levels)] if self.shape is not None else _by_size(levels)
        for group in groups:
            yield from self._play_group(group, self.shape or _common_shape([level for _, level in group]), search, seed)

    def _play_group(
        self, levels: Sequence[Numbered], shape: tuple[int, int], search: PlannerSettings, seed: int
    ) -> Iterator[LevelResult]:
        boards = [replace(level, grid=pad(level.grid, shape)) for _, level in levels]
        domain = Sokoban(self._domain, levels=boards)
        workers = self.trained.config.workers
        if isinstance(search, BestFirstConfig):
            search = replace(search, width=min(search.width, _most_expanded(domain)))
            workers = 1  # they would share the levels in flight, and with them the batches of the network
        batch = min(self._affordable(domain, search), len(levels))
        pool = make_pool(
            self.trained,
            domain,
            search,
            episodes=len(levels),
            seed=seed,
            batch=batch,
            workers=workers,
            starts=np.stack([board.grid.ravel() for board in boards]),
        )
        shares = _Shares(batch, min(workers, batch))
        while pool.num_active:
            for episode, seconds in shares.step(pool):
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
                    seconds=seconds,
                    ended_by=episode.ended_by or ("solution" if solution is not None else "max_steps"),
                )

    def _affordable(self, domain: Sokoban, search: PlannerSettings) -> int:
        """Returns how many levels to play at once, so that memory suffices even if all of them take long."""
        trained = self.trained
        num_members, num_actions = trained.values.num_members, len(domain.action_names)
        if isinstance(search, BestFirstConfig):
            sizes = StoreSizes(1, domain.state_size, num_actions, num_members, trained.values.has_policy)
            records = (search.memory_limit_mb << 20) // sizes.record_bytes
            room = 1 << max(records.bit_length() - 1, 0)  # the store has a power of two
            by_room = room // (_STATES_PER_EXPANSION * search.max_expansions)
            return max(min(by_room, _most_expanded(domain) // search.width, IN_FLIGHT), 1)
        if not isinstance(search, SearchConfig):
            return trained.config.batch
        steps = search.max_steps or domain.max_steps
        arena = Sizes(1, domain.state_size, num_actions, num_members, search.num_subsampled or num_members, steps)
        most = search.passes * steps * num_actions
        room = 1 << most.bit_length()
        return min(max(_MEMORY // arena_bytes(arena, room, room), 1), trained.config.batch)


def _most_expanded(domain: Sokoban) -> int:
    """Returns how many boards can be expanded at once if the network is to see all that follow; at least 1."""
    return max(_CELLS_AT_ONCE // (len(domain.action_names) * domain.state_size), 1)


class _Shares:
    """Steps of a pool, and what share of their time each level had that was in play.

    A pool's worker w of W plays the episodes w, W + w, 2 W + w and so on, and begins one when another is over.
    """

    def __init__(self, batch: int, workers: int) -> None:
        self._each = 0.0  # seconds of a level that has been in play all the time
        self._before = dict.fromkeys(range(batch), 0.0)  # what that was when each episode in play began
        self._newest = {number % workers: number for number in range(batch)}  # episode of each worker

    def step(self, pool: Pool) -> Iterator[tuple[Episode, float]]:
        """Makes a step; yields the episodes that are over, with the seconds of each."""
        began, num_active = time.perf_counter(), pool.num_active
        episodes = pool.step()
        self._each += (time.perf_counter() - began) / num_active
        for episode in episodes:
            seconds = self._each - self._before.pop(episode.index)
            worker = episode.index % len(self._newest)
            self._newest[worker] += len(self._newest)
            self._before[self._newest[worker]] = self._each
            yield episode, seconds


def _by_size(levels: Sequence[Numbered]) -> list[list[Numbered]]:
    """Returns the levels, small ones first, in groups that can share a size without many walls around."""
    groups: list[list[Numbered]] = []
    shape = (0, 0)
    for number, level in sorted(levels, key=lambda numbered: numbered[1].grid.size):
        larger = max(shape[0], level.shape[0]), max(shape[1], level.shape[1])
        if groups and larger[0] * larger[1] <= max(_SMALL, _WASTE * groups[-1][0][1].grid.size):
            groups[-1].append((number, level))
            shape = larger
        else:
            groups.append([(number, level)])
            shape = level.shape
    return groups


def _common_shape(levels: Sequence[Level]) -> tuple[int, int]:
    return max(level.shape[0] for level in levels), max(level.shape[1] for level in levels)
