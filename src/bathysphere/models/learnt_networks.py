"""Networks that are learnt while acting: what they learn from, when, and how they are saved."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from bathysphere.domains.base import Domain, States, Successors
from bathysphere.models.step_replay import StepReplay, Steps
from bathysphere.storage.state import (
    Arrays,
    check_finite,
    check_optimiser,
    generator_state,
    prefixed,
    require,
    restore_generator,
    section,
)

BATCH_SIZE = 128
CHUNK = 512  # rows predicted at once: bounds memory and keeps to the cache
_CAPACITY = 50_000  # steps to learn from
_STEPS_PER_UPDATE = 5  # of real steps; each network makes as many updates
_HALF_LIFE = 1000  # updates after which the learning rate is half of what it was; it falls as 1 / (1 + updates / this)


class LearntNetworks(ABC):
    """One network or several, each learning from batches of its own of the latest real steps.

    Args:
      domain: the world; nothing but the sizes of its rows is used.
      seed: decides initial weights and what is learnt from.
      num_networks: to learn.
      make: returns a network with a `learning_rate`, of Adam, at first; its weights come from the generator given.
    """

    def __init__(
        self, domain: Domain, seed: int, num_networks: int, make: Callable[[np.random.Generator], torch.nn.Module]
    ) -> None:
        self._rng = np.random.default_rng([seed, 1])
        self._num_actions, self._state_size = len(domain.action_names), domain.state_size
        self._networks: list[Any] = [make(self._rng) for _ in range(num_networks)]
        self._optimisers = [torch.optim.Adam(network.parameters()) for network in self._networks]
        self._replay = StepReplay(_CAPACITY, domain.state_size, self._num_actions)
        self._num_updates = 0
        self.asked: States = np.zeros((0, domain.state_size), np.uint8)  # the latest states it was asked about

    @property
    def num_steps(self) -> int:
        """Real steps it was told of."""
        return self._replay.num_added

    def learn(self, states: States, actions: NDArray[np.integer], outcomes: Successors) -> None:
        """Keeps steps: `actions` [n] in `states`, uint8 [n, S], had `outcomes`; then makes the updates that are due."""
        self._meet(self._replay.add(states, actions, outcomes))
        while self._num_updates < self._replay.num_added // _STEPS_PER_UPDATE:
            self._update()

    def _meet(self, steps: Steps) -> None:  # noqa: B027 (most need no more than the replay)
        """Sees new steps before anything is learnt from them."""

    @abstractmethod
    def _loss(self, network: Any) -> torch.Tensor:
        """Draws a batch and returns how wrong `network` is about it."""

    def _update(self) -> None:
        for network, optimiser in zip(self._networks, self._optimisers, strict=True):
            objective = self._loss(network)
            optimiser.param_groups[0]["lr"] = network.learning_rate / (1 + self._num_updates / _HALF_LIFE)
            optimiser.zero_grad()
            objective.backward()  # type: ignore[no-untyped-call]
            optimiser.step()
        self._num_updates += 1

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
        check_optimiser(saved)
        slots: dict[int, dict[str, torch.Tensor]] = {}
        for name, array in saved.items():
            index_text, slot = name.split(".")
            slots.setdefault(int(index_text), {})[slot] = torch.from_numpy(np.array(array))
        optimiser.load_state_dict({"state": slots, "param_groups": optimiser.state_dict()["param_groups"]})
