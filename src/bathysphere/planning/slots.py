"""What all planners share that play episodes in slots: how they are set up, which episodes begin, and the clock."""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Any, TypedDict

import numpy as np
from numpy.typing import NDArray

from bathysphere.domains.base import Domain, Model, Starts, States
from bathysphere.domains.real_steps import MadeSteps
from bathysphere.errors import BathysphereError
from bathysphere.planning.config import PlannerSettings
from bathysphere.planning.episode import Episode
from bathysphere.planning.planner import Values, Work
from bathysphere.planning.start_states import Beginning, EpisodeStarts, find_starts
from bathysphere.storage.state import generator_state, restore_generator


class PlayOptions(TypedDict, total=False):
    """The keyword arguments that every planner takes; `MCTS` says what they mean."""

    batch: int
    seed: int | np.random.SeedSequence
    model: Model | None
    num_episodes: int | None
    starts: States | Starts | None
    worker: int
    workers: int
    steady: bool
    graph_states: int | None


class SlotPlanner(ABC):
    """Plays `batch` episodes at once, each in a slot of its own.

    A planner on this base says how steps are planned and made (`plan`, `act`), and what a new episode in a slot begins
    with. Finished episodes restart in their slot until `num_episodes` have been started.

    Args: as for `MCTS`.
    """

    makes_plans = False

    def __init__(
        self,
        domain: Domain,
        values: Values,
        config: PlannerSettings,
        *,
        batch: int = 1,
        seed: int | np.random.SeedSequence = 0,
        model: Model | None = None,
        num_episodes: int | None = None,
        starts: States | Starts | None = None,
        worker: int = 0,
        workers: int = 1,
        steady: bool = False,
        graph_states: int | None = None,
    ) -> None:
        if batch < 1:
            raise BathysphereError(f"batch is {batch}; expected at least 1 episode at a time.")
        self.domain, self.values, self.config = domain, values, config
        self.model: Model = domain if model is None else model
        self.num_episodes = num_episodes
        self.max_steps = config.max_steps or domain.max_steps
        self.work = Work()
        self.made: MadeSteps | None = None  # the latest, where planning does not go by the rules
        self._steady, self._graph_states = steady, graph_states
        sequence = seed if isinstance(seed, np.random.SeedSequence) else np.random.SeedSequence(seed)
        stream = find_starts(starts, domain, sequence)
        self._rng = np.random.default_rng(sequence)
        self._starts = EpisodeStarts(domain, stream, self._rng, num_episodes, worker, workers)
        self._active = np.zeros(batch, np.bool_)
        self._episode = np.zeros(batch, np.int64)
        self._actions = np.zeros(batch, np.int32)

    @property
    def active(self) -> NDArray[np.bool_]:
        """Which slots hold a running episode, bool [B]."""
        return self._active

    @property
    def actions(self) -> NDArray[np.int32]:
        """The actions of the last step, int32 [B]."""
        return self._actions

    def step(self, steps: int = 1) -> list[Episode]:
        """Plans and makes `steps` steps in every running episode.

        Returns:
          The episodes that finished: those of the first step first, and of each step in slot order.
        """
        began, before = time.perf_counter(), sum(self.work.seconds.values())
        episodes = self._make_steps(steps)
        counted = sum(self.work.seconds.values()) - before
        self.work.seconds["other"] += time.perf_counter() - began - counted
        return episodes

    @abstractmethod
    def plan(self) -> None:
        """Plans the next step of every episode without making it."""

    @abstractmethod
    def act(self) -> list[Episode]:
        """Makes the planned steps; returns the episodes that finished, in slot order."""

    def _make_steps(self, steps: int) -> list[Episode]:
        """Makes `steps` steps in every running episode, one step in all of them at a time."""
        episodes: list[Episode] = []
        for _ in range(steps):
            if not self._active.any():
                break
            self.plan()
            episodes += self.act()
        return episodes

    def _begin_episodes(self, slots: NDArray[np.intp]) -> tuple[NDArray[np.intp], Beginning] | None:
        """Begins as many episodes as are still allowed; returns the slots [k] they are in, and how they begin.

        The other slots fall silent; None if all of them do.
        """
        self._active[slots] = False
        before = time.perf_counter()
        beginning = self._starts.begin(len(slots), len(self._active))
        self.work.seconds["starts"] += time.perf_counter() - before
        if beginning is None:
            return None
        slots = slots[: len(beginning.indices)]
        self._active[slots] = True
        self._episode[slots] = beginning.indices
        return slots, beginning

    def _numbers(self, slots: NDArray[np.intp]) -> NDArray[np.int64]:
        """Returns the numbers of the episodes in `slots` [k] among those of all workers."""
        return self._starts.number(self._episode[slots])

    def _slots_state(self) -> dict[str, NDArray[Any]]:
        """Returns what is common to all planners: which episodes run, what was counted, the generator."""
        return {
            **self._starts.state_dict(self._active, self._episode),
            **self.work.state_dict(),
            "rng": generator_state(self._rng),
        }

    def _load_slots_state(self, state: Mapping[str, NDArray[Any]]) -> None:
        """Restores what `_slots_state` returned; there may be other arrays too."""
        self._starts.load_state_dict(state, self._active, self._episode)
        self.work.load_state_dict(state)
        restore_generator(self._rng, state["rng"])
