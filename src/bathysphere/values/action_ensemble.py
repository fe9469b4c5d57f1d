"""Members that estimate actions: an ensemble with a column for every action of every member."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from bathysphere.domains.base import ObservationSpec
from bathysphere.errors import BathysphereError
from bathysphere.values.batch import Batch, UpdateStats
from bathysphere.values.config import OptimiserConfig, ValuesConfig
from bathysphere.values.ensemble import Ensemble


class ActionEnsemble(Ensemble):
    """E members that estimate each of A actions, evaluated and trained together.

    Action a of member e is column a * E + e of an ordinary ensemble: a table, or networks that share their weights only
    with `shared_trunk`. As a value of a state, a member gives that of its best action.

    Args: as for `Ensemble`.
    """

    def __init__(
        self,
        config: ValuesConfig,
        optimiser: OptimiserConfig,
        observation: ObservationSpec,
        seed: int | np.random.Generator,
        device: str = "cpu",
        num_actions: int = 0,
    ) -> None:
        if config.policy or config.num_towers:
            raise BathysphereError(
                "values.policy and values.num_towers go with values of states; leave them out, or plan with another "
                "planner than none."
            )
        columns = replace(config, num_members=num_actions * config.num_members)
        super().__init__(columns, optimiser, observation, seed, device, num_actions)
        self.num_members = config.num_members

    def evaluate(self, observations: NDArray[np.generic]) -> NDArray[np.float32]:
        """Returns what every member thinks its best action is worth, float32 [n, E]."""
        best: NDArray[np.float32] = self.evaluate_actions(observations).max(axis=1)
        return best

    def evaluate_actions(self, observations: NDArray[np.generic]) -> NDArray[np.float32]:
        """Returns every member's value of every action, float32 [n, A, E]."""
        columns = super().evaluate(observations)
        return columns.reshape(len(columns), self._num_actions, self.num_members)

    def update_many(self, batch: Batch) -> UpdateStats:
        """Makes u updates in order; the columns of actions that were not taken stay as they are.

        Args:
          batch: as for `Ensemble.update_many`, with `actions` [u, b].
        """
        assert batch.actions is not None
        is_taken = batch.actions[:, :, None] == np.arange(self._num_actions)
        mask = is_taken[:, :, :, None] & batch.mask[:, :, None, :]
        targets = np.broadcast_to(np.asarray(batch.targets)[:, :, None, :], mask.shape)
        shape = (*mask.shape[:2], -1)
        stats = super().update_many(Batch(batch.observations, targets.reshape(shape), mask.reshape(shape)))
        by_action = stats.member_losses.reshape(self._num_actions, self.num_members)
        counted = np.maximum(np.isfinite(by_action).sum(axis=0), 1)
        means = np.where(np.isfinite(by_action).any(axis=0), np.nansum(by_action, axis=0) / counted, np.nan)
        return replace(stats, member_losses=means)
