"""A learned model as the planner sees it: states in, everything one step ahead of them out."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from bathysphere.domains.base import Domain, States, Successors, as_rows
from bathysphere.domains.sokoban import Rewards
from bathysphere.domains.sokoban.rules import WALL
from bathysphere.errors import BathysphereError
from bathysphere.models.config import ModelConfig
from bathysphere.models.model_file import BoardSpec, ModelFile, read_model
from bathysphere.models.network import Network, build_network
from bathysphere.storage.state import Arrays

_CHUNK = 512  # rows predicted at once: bounds memory and keeps to the cache


class LearnedModel:
    """A network behind the `successors` of a domain.

    Predicted boards are used as they are, possible or not. A step that the network believes to solve the board ends
    the episode and earns the final reward.

    Args:
      file: what a model file holds.
      domain: Sokoban with boards and actions as the model was trained on.
      source: the model's name, for messages.
    """

    def __init__(self, file: ModelFile, domain: Domain, source: str = "in memory") -> None:
        file.check_fits(domain, source)
        network = build_network(file.config, file.world.num_codes, len(file.world.actions), np.random.default_rng(0))
        shapes = {name: tuple(tensor.shape) for name, tensor in network.state_dict().items()}
        arrived = {name: array.shape for name, array in file.weights.items()}
        if shapes != arrived:
            raise BathysphereError(
                f"The model {source} has weights {arrived}; a {file.config.kind} network of {file.config.channels} "
                f"channels has {shapes}. The file was put together wrongly; train a new one."
            )
        self.config, self.world = file.config, file.world
        self.rewards: Rewards = domain.config.rewards  # type: ignore[attr-defined]
        self._set_weights(network, file.weights)

    @classmethod
    def of_network(cls, network: Network, config: ModelConfig, domain: Domain) -> LearnedModel:
        """Makes a model of a network as it is now; training it further changes nothing here."""
        return cls(ModelFile(config, BoardSpec.of(domain), {}, weights_of(network)), domain)

    def successors(self, states: States) -> Successors:
        """Predicts all actions from `states`, uint8 [n, S]."""
        world = self.world
        boards = as_rows(states, world.height * world.width).reshape(-1, world.height, world.width)
        num_actions = len(world.actions)
        next_states = np.empty((len(boards), num_actions, world.height * world.width), np.uint8)
        done = np.empty((len(boards), num_actions), np.bool_)
        with torch.inference_mode():
            for start in range(0, len(boards), _CHUNK):
                part = np.s_[start : start + _CHUNK]
                next_states[part], done[part] = self._predict(boards[part])
        rewards = np.where(done, self.rewards.step + self.rewards.finished, self.rewards.step)
        return Successors(next_states, rewards, done, done.copy())

    def _predict(self, boards: NDArray[np.uint8]) -> tuple[States, NDArray[np.bool_]]:
        """Returns codes, uint8 [n, A, S], and done, bool [n, A], for boards [n, H, W]."""
        # A code that no network knows blocks like a wall, as it does in the rules. PyTorch wants writable memory.
        known = np.where(boards < self.world.num_codes, boards, np.uint8(WALL))
        cells, done = self._network(torch.from_numpy(known))
        codes = read_codes(cells, self.config)
        return codes.flatten(2).to(torch.uint8).numpy(), (done > 0).numpy()

    def _set_weights(self, network: Network, weights: Arrays) -> None:
        network.load_state_dict({name: torch.from_numpy(np.array(array)) for name, array in weights.items()})
        # Boards come with their codes last in memory, and filters that have it so are faster on a CPU.
        self._network = network.to(memory_format=torch.channels_last).requires_grad_(False)  # type: ignore[call-overload]

    def __getstate__(self) -> dict[str, Any]:
        """Leaves the network behind: other processes get plain arrays and build their own."""
        rest = {name: value for name, value in self.__dict__.items() if name != "_network"}
        return {**rest, "weights": weights_of(self._network)}

    def __setstate__(self, state: dict[str, Any]) -> None:
        weights = state.pop("weights")
        self.__dict__.update(state)
        num_codes, num_actions = self.world.num_codes, len(self.world.actions)
        self._set_weights(build_network(self.config, num_codes, num_actions, np.random.default_rng(0)), weights)


def load_model(source: str | Path, domain: Domain) -> LearnedModel:
    """Returns the model called `source` (a shipped one, or a file), ready to plan in `domain`."""
    return LearnedModel(read_model(source), domain, str(source))


def read_codes(cells: torch.Tensor, config: ModelConfig) -> torch.Tensor:
    """Reads logits [n, A, H, W, codes] as codes [n, A, H, W].

    Softmax: the likeliest code. Sigmoid: the one that is above one half, as in the authors' code. A cell that is
    nothing or several things at once cannot be told as a code; it becomes a wall, which blocks, and which is never
    right by luck where something moved.
    """
    if config.cells == "softmax":
        return cells.argmax(dim=-1)
    is_on = cells > 0
    codes = is_on.to(torch.uint8).argmax(dim=-1)
    return torch.where(is_on.sum(dim=-1) == 1, codes, WALL)


def weights_of(network: Network) -> Arrays:
    """Returns copies of a network's weights by name, contiguous."""
    return {name: np.array(tensor.numpy(), order="C") for name, tensor in network.state_dict().items()}
