"""A user's own value network among ours."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from bathysphere.domains.base import Features, ObservationSpec
from bathysphere.errors import BathysphereError
from bathysphere.values.config import ValuesConfig
from bathysphere.values.registry import find_factory


class OwnNetwork(nn.Module):
    """What a user's factory made: observations [n, ...] to values [n, E]."""

    def __init__(self, network: nn.Module) -> None:
        super().__init__()
        self.network = network

    def forward(self, observations: Tensor) -> Tensor:
        """Evaluates all members."""
        values: Tensor = self.network(observations)
        return values

    def num_tensors(self) -> int:
        """Counts parameter tensors."""
        return len(list(self.parameters()))


def build_own_network(config: ValuesConfig, observation: ObservationSpec, rng: np.random.Generator) -> OwnNetwork:
    """Has the factory of `config.network` make a network, and tries it.

    Args:
      config: names the network.
      observation: what the network reads.
      rng: seeds PyTorch's generator, which is afterwards as before.
    """
    factory: Any = find_factory(config.network)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(int(rng.integers(2**63)))
        network = factory(observation, config)
    if not isinstance(network, nn.Module):
        raise BathysphereError(
            f"The factory of the network {config.network!r} returned a {type(network).__name__}; expected a "
            "torch.nn.Module."
        )
    own = OwnNetwork(network).eval()
    is_plain = isinstance(observation, Features)
    shape = (observation.size,) if isinstance(observation, Features) else observation.shape
    tried = torch.zeros((2, *shape), dtype=torch.float32 if is_plain else torch.int32)
    try:
        values = own(tried)
    except Exception as error:
        raise BathysphereError(
            f"The network {config.network!r} failed on observations {list(tried.shape)} of {tried.dtype}: {error} "
            "Categories arrive as whole numbers; turn them into one-hot vectors or embeddings first."
        ) from error
    if not isinstance(values, Tensor) or values.shape != (2, config.num_members):
        arrived = list(values.shape) if isinstance(values, Tensor) else type(values).__name__
        raise BathysphereError(
            f"The network {config.network!r} turned observations {list(tried.shape)} into {arrived}; expected values "
            f"[2, {config.num_members}], one for each member (values.num_members)."
        )
    return own
