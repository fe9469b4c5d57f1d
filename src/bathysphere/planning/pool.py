"""The play of a run in one process: a planner, or several in turn in runs of earlier versions."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bathysphere.domains.base import Domain, Model, Remembers, Starts, States
from bathysphere.domains.real_steps import MadeSteps
from bathysphere.errors import BathysphereError
from bathysphere.planning.config import PlannerSettings, SearchConfig
from bathysphere.planning.episode import Episode
from bathysphere.planning.planner import Values, Work, make_planner, play_all
from bathysphere.planning.start_states import find_starts
from bathysphere.storage.state import prefixed, section


class Pool:
    """Plays `batch` episodes with `workers` planners in turn, each with its own share of the batch and its own seed.

    The pool's n-th episode begins with the n-th of the start states, if those are numbered.

    Args:
      workers: number of planners; at most `batch`.
      The others: as for `MCTS`.
    """

    def __init__(
        self,
        domain: Domain,
        values: Values,
        config: PlannerSettings | None = None,
        *,
        batch: int = 1,
        seed: int | np.random.SeedSequence = 0,
        workers: int = 1,
        model: Model | None = None,
        num_episodes: int | None = None,
        starts: States | Starts | None = None,
        steady: bool = False,
        graph_states: int | None = None,
    ) -> None:
        if not 1 <= workers <= batch:
            raise BathysphereError(
                f"workers is {workers}; expected 1 to {batch}, the number of episodes played at once."
            )
        sequence = seed if isinstance(seed, np.random.SeedSequence) else np.random.SeedSequence(seed)
        starts = find_starts(starts, domain, sequence)  # one stream for all planners
        self.num_episodes = num_episodes
        self._domain = domain
        self._planners = [
            make_planner(
                domain,
                values,
                config or SearchConfig(),
                batch=len(range(number, batch, workers)),
                seed=child,
                model=model,
                num_episodes=None if num_episodes is None else len(range(number, num_episodes, workers)),
                starts=starts,
                worker=number,
                workers=workers,
                steady=steady,
                graph_states=graph_states,
            )
            for number, child in enumerate(sequence.spawn(workers))
        ]

    def step(self, steps: int = 1) -> list[Episode]:
        """Makes `steps` steps in every running episode.

        Returns:
          The episodes that finished, planner after planner; within a planner those of the first step first.
        """
        return [episode for planner in self._planners for episode in planner.step(steps)]

    def made(self) -> list[MadeSteps]:
        """Returns the steps that were made last by those that plan with a model."""
        return [planner.made for planner in self._planners if planner.made is not None]

    def play(self) -> list[Episode]:
        """Plays until no episode is left (`num_episodes` must be set); returns them in order of starting."""
        if self.num_episodes is None:
            raise BathysphereError("Pool.play needs num_episodes; without it the search never ends.")
        episodes = [episode for planner in self._planners for episode in play_all(planner)]
        return sorted(episodes, key=lambda episode: episode.index)

    @property
    def num_active(self) -> int:
        """Episodes running now."""
        return sum(int(planner.active.sum()) for planner in self._planners)

    @property
    def work(self) -> Work:
        """What planning has cost so far, summed over planners."""
        return sum((planner.work for planner in self._planners), Work())

    @property
    def graph_bytes(self) -> int:
        """Memory of all search graphs together, in bytes."""
        return sum(planner.graph_bytes for planner in self._planners)

    def state_dict(self) -> dict[str, NDArray[Any]]:
        """Returns everything a resumed pool needs to go on bit for bit, half-played episodes included."""
        state: dict[str, NDArray[Any]] = {}
        for number, planner in enumerate(self._planners):
            state |= prefixed(f"worker{number}.", planner.state_dict())
        if isinstance(self._domain, Remembers):
            state |= prefixed("domain0.", self._domain.state_dict())
        return state

    def load_state_dict(self, state: Mapping[str, NDArray[Any]]) -> None:
        """Restores what `state_dict` returned; sizes and config must be the same."""
        if isinstance(self._domain, Remembers):  # what each process knew, when there were several
            names = sorted({name.partition(".")[0] for name in state if name.startswith("domain")})
            self._domain.load_state_dicts([section(state, f"{name}.") for name in names])
        for number, planner in enumerate(self._planners):
            planner.load_state_dict(section(state, f"worker{number}."))
