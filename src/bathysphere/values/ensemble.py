"""The ensemble of value functions, as the rest of the package sees it: arrays in, arrays out."""

from __future__ import annotations

import copy
from dataclasses import replace
from typing import TYPE_CHECKING, cast

import numpy as np
from numpy.typing import NDArray

from bathysphere.domains.base import Categories, Features, ObservationSpec
from bathysphere.errors import BathysphereError
from bathysphere.storage.state import Arrays, check_finite, check_optimiser
from bathysphere.values.batch import Batch, UpdateStats
from bathysphere.values.config import OptimiserConfig, ValuesConfig
from bathysphere.values.mlp import MlpLearner, is_small_mlp
from bathysphere.values.table import TableLearner, is_table

if TYPE_CHECKING:
    from torch import nn

    from bathysphere.values.network_learner import NetworkLearner


class Ensemble:
    """E value functions that are evaluated and trained together.

    Args:
      config: network and number of members.
      optimiser: how updates are made.
      observation: what `evaluate` and `update` receive, as the domain declares it.
      seed: an int, or a generator to draw the initial weights from. PyTorch's own generator is not touched.
      device: "cpu", "cuda", "mps" or "auto". A table stays in main memory whatever the device.
      num_actions: of the domain, A; needed if members have policies.
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
        if config.policy and num_actions < 1:
            raise BathysphereError(
                f"values.policy needs the number of the domain's actions, and num_actions is {num_actions}; pass "
                "len(domain.action_names)."
            )
        rng = np.random.default_rng(seed)
        self._config, self._optimiser = config, optimiser
        self.num_members = self._num_columns = config.num_members
        self.has_policy = config.policy
        self._num_actions = num_actions
        self._observation = observation
        self._shape = (observation.size,) if isinstance(observation, Features) else tuple(observation.shape)
        self._takes_any_size = config.network == "board"
        self._learner: TableLearner | MlpLearner | NetworkLearner
        self._scale = np.float32(config.scale)
        if isinstance(observation, Categories) and is_table(config, optimiser, observation):
            # What a table holds are the values themselves, which compiled planners read there.
            self._scale = np.float32(1.0)
            scaled = replace(config, init_scale=config.init_scale * config.scale)
            self._learner = TableLearner(scaled, optimiser, observation.num_categories, rng)
        elif is_small_mlp(config, optimiser) and _is_cpu(device):
            self._learner = MlpLearner(config, optimiser, observation, rng)
        else:
            # Imports PyTorch, which the other two do not need.
            from bathysphere.values.network_learner import NetworkLearner

            self._learner = NetworkLearner(config, optimiser, observation, rng, device, num_actions)

    def evaluate(self, observations: NDArray[np.generic]) -> NDArray[np.float32]:
        """Returns every member's value of every observation.

        Args:
          observations: [n, ...] as the domain's `observe` returns them.

        Returns:
          float32 [n, E], contiguous.
        """
        checked = self._checked(observations, 1)
        if not len(checked):
            return np.empty((0, self._num_columns), np.float32)
        values = self._learner.evaluate(checked)
        return values if self._scale == 1.0 else values * self._scale

    def evaluate_with_policy(
        self, observations: NDArray[np.generic]
    ) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
        """Returns values, float32 [n, E], and the mean of the members' policies, float32 [n, A]: probabilities.

        Raises:
          BathysphereError: if members have no policies (`has_policy`).
        """
        values, policies = self.policies(observations)
        return values, policies.mean(axis=1)

    def policies(self, observations: NDArray[np.generic]) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
        """Returns values, float32 [n, E], and every member's policy, float32 [n, E, A]: probabilities."""
        checked = self._checked(observations, 1)
        if not self.has_policy:
            raise BathysphereError(
                "These values have no policy. Train with values.policy (and values.network board), or use a planner "
                "that needs none: mcts or best-first."
            )
        if not len(checked):
            shape = (0, self.num_members, self._num_actions)
            return np.empty(shape[:2], np.float32), np.empty(shape, np.float32)
        outputs = cast("NetworkLearner", self._learner).outputs(checked)
        logits = outputs[:, :, 1:] - outputs[:, :, 1:].max(axis=2, keepdims=True)
        weights = np.exp(logits)
        return outputs[:, :, 0] * self._scale, weights / weights.sum(axis=2, keepdims=True)

    @property
    def table(self) -> NDArray[np.float32] | None:
        """What `evaluate` looks one category up in, [R, E], read-only; None if this ensemble is no table."""
        return self._learner.table if isinstance(self._learner, TableLearner) else None

    def module(self) -> nn.Module:
        """Returns a copy as a plain PyTorch module: observations [n, ...] to values [n, E], equal but for rounding.

        Values that are played in int8 (`values.precision`) are those of the network before it is rounded.
        """
        import torch

        from bathysphere.values.module import TableNetwork, ValueModule
        from bathysphere.values.network_learner import NetworkLearner

        if self.table is not None:
            return ValueModule(TableNetwork(torch.from_numpy(self.table.copy())), self._observation)
        learner = self._learner
        if not isinstance(learner, NetworkLearner):
            learner = NetworkLearner(self._config, self._optimiser, self._observation, np.random.default_rng(0), "cpu")
            learner.load_weights(self.weights())
        return learner.module(self._observation)

    def snapshot(self) -> Ensemble:
        """Returns a copy that stays as this ensemble is now; it can be evaluated, not updated."""
        taken = copy.copy(self)
        taken._learner = self._learner.snapshot()
        return taken

    def update(self, batch: Batch) -> UpdateStats:
        """Makes one update.

        Args:
          batch: one batch without the leading axis: observations [b, ...], targets [b, M], mask [b, E].
        """
        return self.update_many(
            Batch(
                np.asarray(batch.observations)[None],
                np.asarray(batch.targets)[None],
                np.asarray(batch.mask)[None],
                None if batch.policy is None else np.asarray(batch.policy)[None],
            )
        )

    def update_many(self, batch: Batch) -> UpdateStats:
        """Makes u updates in order; the same as u calls of `update`, in one.

        Args:
          batch: observations [u, b, ...], targets [u, b, M], M being 1 or E, mask [u, b, E], and policy [u, b, A] if
            members have policies.
        """
        observations = np.ascontiguousarray(self._checked(batch.observations, 2))
        targets = np.ascontiguousarray(batch.targets, np.float32)
        if self._scale != 1.0:
            targets = targets / self._scale
        mask = np.ascontiguousarray(batch.mask, np.bool_)
        expected = observations.shape[:2]
        is_fitting = targets.shape in {(*expected, 1), (*expected, self._num_columns)}
        if not is_fitting or mask.shape != (*expected, self._num_columns):
            raise BathysphereError(
                f"targets have shape {targets.shape} and the mask {mask.shape}; expected {(*expected, 1)} "
                f"(or as many as members) and {(*expected, self._num_columns)} for observations of shape "
                f"{observations.shape}."
            )
        policy = None if batch.policy is None else np.ascontiguousarray(batch.policy, np.float32)
        wanted = (*expected, self._num_actions) if self.has_policy else None
        arrived = None if policy is None else policy.shape
        if arrived != wanted:
            raise BathysphereError(
                f"policy targets have shape {arrived}; expected {wanted or 'none, since these values have no policy'}."
            )
        return self._learner.update(Batch(observations, targets, mask, policy))

    def state_dict(self) -> Arrays:
        """Returns copies of weights and optimiser state by flat names; loading them resumes bit for bit."""
        return self._learner.state_dict()

    def load_state_dict(self, state: Arrays) -> None:
        """Restores what `state_dict` returned, from an ensemble with the same settings.

        Mutates: the ensemble.
        """
        check_finite(state)
        check_optimiser(state)
        self._learner.load_state_dict(state)

    def weights(self) -> Arrays:
        """Returns copies of what `evaluate` depends on, by flat names: no optimiser state."""
        return self._learner.weights()

    def load_weights(self, weights: Arrays) -> None:
        """Restores what `weights` returned, from an ensemble with the same settings.

        Mutates: what `evaluate` depends on. What the optimiser remembers stays.
        """
        self._learner.load_weights(weights)

    def _checked(self, observations: NDArray[np.generic], num_leading: int) -> NDArray[np.generic]:
        """Refuses observations of a wrong shape or range; kernels rely on the range."""
        own = observations.shape[num_leading:]
        is_fitting = own == self._shape or (self._takes_any_size and len(own) == 2 and min(own) > 0)
        if not is_fitting or observations.ndim < num_leading:
            raise BathysphereError(
                f"observations have shape {observations.shape}; expected {num_leading} leading axes and then "
                f"{self._shape}, as {self._observation} says. Was the ensemble built for another domain?"
            )
        if isinstance(self._observation, Features):
            return observations.astype(np.float32, copy=False)
        if observations.dtype.kind not in "iu":
            raise BathysphereError(
                f"observations are {observations.dtype}; categories are integers. Return uint8 or int32 from observe."
            )
        limit = self._observation.num_categories
        # Seen as unsigned, a negative code is a huge one, so one comparison finds both.
        unsigned = observations.view(f"u{observations.dtype.itemsize}")
        if observations.size and unsigned.max() >= limit:
            raise BathysphereError(
                f"observations hold categories from {observations.min()} to {observations.max()}; "
                f"expected 0 to {limit - 1}, as {self._observation} says."
            )
        return observations


def num_actions_of(weights: Arrays) -> int:
    """Returns how many actions the policies in `weights` know, as `Ensemble.weights` returned them; 1 without any."""
    outputs = weights.get("network.last.bias", np.zeros((1, 1)))  # [E, 1 + A, 1], of a network of kind board
    return max(int(outputs.shape[1]) - 1, 1)


def _is_cpu(device: str) -> bool:
    if device != "auto":
        return device == "cpu"
    from bathysphere.values.network_learner import resolve_device

    return resolve_device(device).type == "cpu"
