"""The training loop: play a step everywhere, remember finished episodes, learn as much as is due."""

from __future__ import annotations

import re
import time
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bathysphere.domains.base import Domain, Model
from bathysphere.learning.config import LearningConfig
from bathysphere.learning.learner import Learner
from bathysphere.planning import Episode, PlannerSettings, Pool
from bathysphere.planning.planner import Work
from bathysphere.values.ensemble import Ensemble

_OLD_NAMES = re.compile(r"^crew\.lane(\d+)")  # of the pool and its workers, in checkpoints of version 0.1


class Trainer(Learner):
    """Playing and learning, interleaved deterministically: everything follows from the seed.

    Args:
      domain: the world.
      values: the ensemble to train.
      search: how episodes are planned.
      learning: how episodes become updates.
      batch, workers, model: as for `Pool`.
      seed: decides start states, ties, members drawn, masks and batches (not the ensemble's initial weights).
    """

    def __init__(
        self,
        domain: Domain,
        values: Ensemble,
        search: PlannerSettings,
        learning: LearningConfig,
        *,
        batch: int = 1,
        workers: int = 1,
        seed: int | np.random.SeedSequence = 0,
        model: Model | None = None,
    ) -> None:
        sequence = seed if isinstance(seed, np.random.SeedSequence) else np.random.SeedSequence(seed)
        play_seed, learn_seed = sequence.spawn(2)
        super().__init__(domain, values, search, learning, learn_seed, model)
        self.pool = Pool(
            domain,
            values,
            self._play_settings,
            batch=batch,
            seed=play_seed,
            workers=workers,
            model=model,
            steady=learning.steady_values,
            graph_states=self._graph_states,
        )

    @property
    def work(self) -> Work:
        """What planning has cost so far."""
        return self.pool.work

    def advance(self) -> list[Episode]:
        """Makes one step in every episode, then all updates that are due; returns the episodes that finished."""
        before = self.pool.work
        episodes = self.pool.step()
        after = self.pool.work
        self.progress.env_steps += after.steps - before.steps
        self._imagine(after.model_calls - before.model_calls)
        if self._asked_model is not None:
            began = time.perf_counter()
            for made in self.pool.made():
                self._asked_model.learn(*made)
            self.learning_seconds += time.perf_counter() - began
        self._take(episodes)
        return episodes

    def load_state_dict(self, state: Mapping[str, NDArray[Any]]) -> None:
        """Restores what `state_dict` returned; the trainer must have been made with the same settings."""
        super().load_state_dict({_OLD_NAMES.sub(r"pool.worker\1", name): array for name, array in state.items()})

    def _parts(self) -> dict[str, Any]:
        return {**super()._parts(), "pool.": self.pool}
