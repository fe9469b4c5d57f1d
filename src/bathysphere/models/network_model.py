"""Models that are learnt while acting by networks: one, or an ensemble that knows what it does not know."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from bathysphere.domains.base import Domain, Imagined, States, Successors, as_rows
from bathysphere.models.predictors import make_predictor
from bathysphere.models.step_replay import StepReplay
from bathysphere.models.unknown import UnknownValues
from bathysphere.models.voting import vote
from bathysphere.storage.state import (
    Arrays,
    check_finite,
    generator_state,
    prefixed,
    require,
    restore_generator,
    section,
)

_CAPACITY = 50_000  # steps to learn from
_STEPS_PER_UPDATE = 5  # of real steps; each network makes as many updates
_BATCH_SIZE = 128
_HALF_LIFE = 1000  # updates after which the learning rate is half of what it was; it falls as 1 / (1 + updates / this)
_NUM_NETWORKS = 3  # of an ensemble
_CHUNK = 512  # rows predicted at once: bounds memory and keeps to the cache


class NetworkModel:
    """Predicts what each action changes, what it pays and whether it ends, learnt from the steps that were made.

    Args:
      domain: the world; nothing but the sizes of its rows is used.
      seed: decides initial weights and what is learnt from.
      num_networks: to learn. The first alone is asked here.
    """

    def __init__(self, domain: Domain, seed: int, num_networks: int = 1) -> None:
        self._rng = np.random.default_rng([seed, 1])
        self._num_actions, self._state_size = len(domain.action_names), domain.state_size
        self._networks = [make_predictor(domain, self._rng) for _ in range(num_networks)]
        self._optimisers = [torch.optim.Adam(network.parameters()) for network in self._networks]
        self._replay = StepReplay(_CAPACITY, domain.state_size, self._num_actions)
        self._num_updates = 0
        self.asked: States = np.zeros((0, domain.state_size), np.uint8)  # the latest states it was asked about

    @property
    def num_steps(self) -> int:
        """Real steps it was told of."""
        return self._replay.num_added

    def successors(self, states: States) -> Successors:
        """Predicts all actions from `states`, uint8 [n, S]."""
        self.asked = as_rows(states, self._state_size)
        return self._told(*self._predict(0, self.asked))

    def learn(self, states: States, actions: NDArray[np.integer], outcomes: Successors) -> None:
        """Keeps steps: `actions` [n] in `states`, uint8 [n, S], had `outcomes`; then makes the updates that are due."""
        self._replay.add(states, actions, outcomes)
        while self._num_updates < self._replay.num_added // _STEPS_PER_UPDATE:
            self._update()

    def _update(self) -> None:
        terminal = torch.from_numpy(self._replay.terminal)
        for network, optimiser in zip(self._networks, self._optimisers, strict=True):
            steps = self._replay.sample(_BATCH_SIZE, self._rng)
            optimiser.param_groups[0]["lr"] = network.learning_rate / (1 + self._num_updates / _HALF_LIFE)
            before, actions, after, kinds = (torch.from_numpy(part) for part in steps)
            objective = network.loss(before, actions, after, kinds, terminal)
            optimiser.zero_grad()
            objective.backward()  # type: ignore[no-untyped-call]
            optimiser.step()
        self._num_updates += 1

    def _predict(self, number: int, states: States) -> tuple[States, NDArray[np.int64]]:
        """Returns what network `number` says: rows, uint8 [n, A, S], and kinds, [n, A]."""
        rows = np.empty((len(states), self._num_actions, self._state_size), np.uint8)
        kinds = np.zeros((len(states), self._num_actions), np.int64)
        terminal = torch.from_numpy(self._replay.terminal)
        if len(terminal) == 0:  # nothing has been seen: nothing changes
            rows[:] = states[:, None]
            return rows, kinds
        with torch.inference_mode():
            for start in range(0, len(states), _CHUNK):
                part = np.s_[start : start + _CHUNK]
                answer = self._networks[number].predict(torch.tensor(states[part]), terminal)
                rows[part], kinds[part] = (tensor.numpy() for tensor in answer)
        return rows, kinds

    def _told(self, rows: States, kinds: NDArray[np.int64]) -> Successors:
        """Returns predicted rows and kinds as a model tells them."""
        replay = self._replay
        if replay.num_kinds == 0:
            return Successors(rows, np.zeros(kinds.shape), *np.zeros((2, *kinds.shape), np.bool_))
        return Successors(rows, replay.rewards[kinds], replay.terminal[kinds], replay.solved[kinds])

    def state_dict(self) -> Arrays:
        """Returns everything learnt, and what learning needs to go on bit for bit."""
        state: Arrays = {"rng": generator_state(self._rng), "num_updates": np.array(self._num_updates)}
        state |= prefixed("replay.", self._replay.state_dict()) | {"asked": self.asked.copy()}
        for number, (network, optimiser) in enumerate(zip(self._networks, self._optimisers, strict=True)):
            for name, tensor in network.state_dict().items():
                state[f"network.{number}.{name}"] = np.array(tensor.numpy(), order="C")
            for index, slots in optimiser.state_dict()["state"].items():
                for slot, tensor in slots.items():
                    state[f"optimiser.{number}.{index}.{slot}"] = np.array(tensor.numpy(), order="C")
        return state

    def load_state_dict(self, state: Mapping[str, NDArray[Any]]) -> None:
        """Restores what `state_dict` returned.

        Mutates: networks, optimisers, replay, generator.
        """
        self._replay.load_state_dict(section(state, "replay."))
        num_updates, asked = int(state["num_updates"]), state["asked"]
        require(num_updates == self._replay.num_added // _STEPS_PER_UPDATE, "updates do not follow from steps")
        require(asked.ndim == 2 and asked.shape[1] == self._state_size, "a model was asked about no states")
        for number, (network, optimiser) in enumerate(zip(self._networks, self._optimisers, strict=True)):
            weights = section(state, f"network.{number}.")
            shapes = {name: tuple(tensor.shape) for name, tensor in network.state_dict().items()}
            require({name: array.shape for name, array in weights.items()} == shapes, "a network has other weights")
            check_finite(weights)
            network.load_state_dict({name: torch.from_numpy(np.array(array)) for name, array in weights.items()})
            self._load_optimiser(optimiser, section(state, f"optimiser.{number}."), num_updates)
        restore_generator(self._rng, state["rng"])
        self._num_updates, self.asked = num_updates, asked.copy()

    def _load_optimiser(
        self, optimiser: torch.optim.Optimizer, saved: Mapping[str, NDArray[Any]], num_updates: int
    ) -> None:
        parameters = optimiser.param_groups[0]["params"]
        expected: dict[str, tuple[int, ...]] = {}
        for index, parameter in enumerate(parameters if num_updates else []):
            shape = tuple(parameter.shape)
            expected |= {f"{index}.step": (), f"{index}.exp_avg": shape, f"{index}.exp_avg_sq": shape}
        require({name: array.shape for name, array in saved.items()} == expected, "an optimiser is of another network")
        check_finite(saved)
        slots: dict[int, dict[str, torch.Tensor]] = {}
        for name, array in saved.items():
            index_text, slot = name.split(".")
            slots.setdefault(int(index_text), {})[slot] = torch.from_numpy(np.array(array))
        optimiser.load_state_dict({"state": slots, "param_groups": optimiser.state_dict()["param_groups"]})


class EnsembleModel(NetworkModel):
    """Networks that vote: what more than half of them say is believed, and all else is unknown.

    Args:
      domain, seed: as for `NetworkModel`.
      num_members: E, of the values.
      spread: of what is unknown, as for `UnknownValues`.
    """

    def __init__(self, domain: Domain, seed: int, num_members: int, spread: float) -> None:
        super().__init__(domain, seed, _NUM_NETWORKS)
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
