"""Models that are learnt while acting by networks: one, or an ensemble that knows what it does not know."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from bathysphere.domains.base import Domain, Imagined, States, Successors, as_rows
from bathysphere.models.learnt_networks import BATCH_SIZE, CHUNK, LearntNetworks
from bathysphere.models.predictors import Predictor, make_predictor
from bathysphere.models.unknown import UnknownValues
from bathysphere.models.voting import vote
from bathysphere.storage.state import Arrays, require

NUM_NETWORKS = 3  # of an ensemble


class NetworkModel(LearntNetworks):
    """Predicts what each action changes, what it pays and whether it ends, learnt from the steps that were made.

    Args:
      domain, seed, num_networks: as for `LearntNetworks`. The first network alone is asked here.
    """

    def __init__(self, domain: Domain, seed: int, num_networks: int = 1) -> None:
        super().__init__(domain, seed, num_networks, lambda rng: make_predictor(domain, rng))

    def successors(self, states: States) -> Successors:
        """Predicts all actions from `states`, uint8 [n, S]."""
        self.asked = as_rows(states, self._state_size)
        return self._told(*self._predict(0, self.asked))

    def _loss(self, network: Predictor) -> torch.Tensor:
        before, actions, after, kinds = map(torch.from_numpy, self._replay.sample(BATCH_SIZE, self._rng))
        return network.loss(before, actions, after, kinds, torch.from_numpy(self._replay.terminal))

    def _predict(self, number: int, states: States) -> tuple[States, NDArray[np.int64]]:
        """Returns what network `number` says: rows, uint8 [n, A, S], and kinds, [n, A]."""
        rows = np.empty((len(states), self._num_actions, self._state_size), np.uint8)
        kinds = np.zeros((len(states), self._num_actions), np.int64)
        terminal = torch.from_numpy(self._replay.terminal)
        if len(terminal) == 0:  # nothing has been seen: nothing changes
            rows[:] = states[:, None]
            return rows, kinds
        with torch.inference_mode():
            for start in range(0, len(states), CHUNK):
                part = np.s_[start : start + CHUNK]
                answer = self._networks[number].predict(torch.tensor(states[part]), terminal)
                rows[part], kinds[part] = (tensor.numpy() for tensor in answer)
        return rows, kinds

    def _told(self, rows: States, kinds: NDArray[np.int64]) -> Successors:
        """Returns predicted rows and kinds as a model tells them."""
        replay = self._replay
        if replay.num_kinds == 0:
            return Successors(rows, np.zeros(kinds.shape), *np.zeros((2, *kinds.shape), np.bool_))
        return Successors(rows, replay.rewards[kinds], replay.terminal[kinds], replay.solved[kinds])


class EnsembleModel(NetworkModel):
    """Networks that vote: what more than half of them say is believed, and all else is unknown.

    Args:
      domain, seed: as for `NetworkModel`.
      num_members: E, of the values.
      spread: of what is unknown, as for `UnknownValues`.
    """

    def __init__(self, domain: Domain, seed: int, num_members: int, spread: float) -> None:
        super().__init__(domain, seed, NUM_NETWORKS)
        self._unknown = UnknownValues(self._num_actions, num_members, spread, seed)

    def successors(self, states: States) -> Successors:
        """Returns what is known of `states`, uint8 [n, S]; what is not known stays where it is."""
        return self.imagine(states).successors

    def imagine(self, states: States) -> Imagined:
        """Returns what most networks say of `states`, uint8 [n, S], and what the rest is worth to each member."""
        self.asked = states = as_rows(states, self._state_size)
        answers = [self._told(*self._predict(number, states)) for number in range(len(self._networks))]
        return vote(answers, states, self._unknown, len(answers) // 2 + 1)

    def state_dict(self) -> Arrays:
        """As that of `NetworkModel`."""
        return {**super().state_dict(), "spread": np.array(self._unknown.spread)}

    def load_state_dict(self, state: Mapping[str, NDArray[Any]]) -> None:
        """As that of `NetworkModel`."""
        require(np.isfinite(state["spread"]), "what is unknown has no spread")
        super().load_state_dict(state)
        self._unknown.spread = float(state["spread"])
