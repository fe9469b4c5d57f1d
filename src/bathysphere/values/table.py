"""A linear ensemble that reads one category is a table: a row per category, a column per member.

Needs no network library: evaluation is a gather of rows, and an update touches only the rows of its batch.
"""

from __future__ import annotations

import copy
import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bathysphere.domains.base import Categories, ObservationSpec
from bathysphere.storage.state import Arrays, require
from bathysphere.values import kernels
from bathysphere.values.batch import Batch, UpdateStats, check_shapes, member_means
from bathysphere.values.config import OptimiserConfig, ValuesConfig


def is_table(config: ValuesConfig, optimiser: OptimiserConfig, observation: ObservationSpec) -> bool:
    """Tells whether this ensemble and its training can be kept as a table."""
    return (
        config.network == "linear"
        and not config.bias
        and isinstance(observation, Categories)
        and math.prod(observation.shape) == 1
        and optimiser.name in ("delta", "sgd", "tf_rmsprop")
        and optimiser.l2 == 0
        and not optimiser.is_extended
    )


class TableLearner:
    """Values as float32 [R, E], R categories.

    A randomised prior on a table only moves where the table starts, so it is added once, at the start.
    """

    def __init__(
        self, config: ValuesConfig, optimiser: OptimiserConfig, num_rows: int, rng: np.random.Generator
    ) -> None:
        shape = (num_rows, config.num_members)
        limit = math.sqrt(6.0 / (num_rows + 1))  # Glorot: a member maps num_rows inputs to 1 output
        start = config.init_scale * rng.uniform(-limit, limit, shape)
        if config.prior_scale:
            start += config.prior_scale * rng.uniform(-limit, limit, shape)
        self._optimiser = optimiser
        self._table = start.astype(np.float32)
        self._num_updates = 0
        has_state = optimiser.name == "tf_rmsprop"
        self._accumulators = np.ones(shape if has_state else (0, 0))
        self._last_update = np.zeros(num_rows if has_state else 0, np.int64)
        self._gradient = np.zeros(shape if optimiser.name != "delta" else (0, 0))

    def evaluate(self, observations: NDArray[np.generic]) -> NDArray[np.float32]:
        """Gathers the rows of `observations`, integers [n] or [n, 1], into float32 [n, E]."""
        return self._table.take(observations.ravel().astype(np.intp, copy=False), axis=0)

    @property
    def table(self) -> NDArray[np.float32]:
        """The values themselves, [R, E]: a window that shows later updates too, not to be written through."""
        window = self._table.view()
        window.flags.writeable = False
        return window

    def snapshot(self) -> TableLearner:
        """Returns a learner with a table of its own, to be evaluated only."""
        taken = copy.copy(self)
        taken._table = self._table.copy()
        return taken

    def update(self, batch: Batch) -> UpdateStats:
        """Learns from the batches in order, in one kernel call."""
        settings = self._optimiser
        num_updates = batch.targets.shape[0]
        rows = batch.observations.reshape(batch.targets.shape[:2])
        member_errors, member_counts = np.zeros(self._table.shape[1]), np.zeros(self._table.shape[1])
        totals = np.zeros(2)
        normalise = kernels.NORMALISE[settings.normalise]
        args: tuple[Any, ...] = (
            self._table,
            rows,
            batch.targets,
            batch.mask,
            settings.learning_rate,
            normalise,
        )
        step: Any = kernels.delta_steps
        if settings.name != "delta":
            step = kernels.gradient_steps
            args += (settings.name == "tf_rmsprop", settings.decay, settings.eps)
            args += (self._accumulators, self._last_update, self._num_updates, self._gradient)
        step(*args, member_errors, member_counts, totals)
        self._num_updates += num_updates
        loss, norm = (totals / max(num_updates, 1)).tolist()
        return UpdateStats(loss, member_means(member_errors, member_counts), norm)

    def weights(self) -> Arrays:
        """Returns a copy of the table."""
        return {"table": self._table.copy()}

    def load_weights(self, weights: Arrays) -> None:
        """Restores what `weights` returned. Mutates: the table in place."""
        check_shapes(self.weights(), weights)
        np.copyto(self._table, weights["table"], casting="same_kind")

    def state_dict(self) -> Arrays:
        """Returns copies of everything that later updates depend on."""
        return {
            **self.weights(),
            "num_updates": np.array(self._num_updates, np.int64),
            "accumulators": self._accumulators.copy(),
            "last_update": self._last_update.copy(),
        }

    def load_state_dict(self, state: Arrays) -> None:
        """Restores what `state_dict` returned.

        Mutates: the table in place.
        """
        check_shapes(self.state_dict(), state)
        self.load_weights({"table": state["table"]})
        last = state["last_update"]
        require(((last >= 0) & (last <= state["num_updates"])).all(), "a row of the table was updated in the future")
        np.copyto(self._accumulators, state["accumulators"], casting="same_kind")
        np.copyto(self._last_update, state["last_update"], casting="same_kind")
        self._num_updates = int(state["num_updates"])
