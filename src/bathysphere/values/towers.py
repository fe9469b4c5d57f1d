"""Transfer: frozen value networks (towers), trained elsewhere, and a small network that learns to put them together."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor, nn

from bathysphere.domains.base import Features, ObservationSpec
from bathysphere.storage.state import Arrays
from bathysphere.values.config import ValuesConfig
from bathysphere.values.networks import ValueNetwork, build_network

HIDDEN_UNITS = 128  # of the hidden aggregator, as in the authors' code


class TowerNetwork(nn.Module):
    """The values of n towers, put together by an aggregator: observations [b, ...] to values [b, 1].

    Only the aggregator has gradients.
    """

    def __init__(self, towers: Sequence[ValueNetwork], aggregator: ValueNetwork) -> None:
        super().__init__()
        self.towers = nn.ModuleList(towers).requires_grad_(False)
        self.aggregator = aggregator

    def forward(self, observations: Tensor) -> Tensor:
        """Evaluates the towers, and what the aggregator makes of them."""
        with torch.no_grad():
            values = torch.cat([tower(observations) for tower in self.towers], dim=1)
        result: Tensor = self.aggregator(values)
        return result

    def num_tensors(self) -> int:
        """Counts the parameter tensors that learn."""
        return self.aggregator.num_tensors()


def build_towers(config: ValuesConfig, observation: ObservationSpec, rng: np.random.Generator) -> TowerNetwork:
    """Builds towers, random until trained weights are loaded (`with_towers`), and their aggregator.

    The linear aggregator starts as the mean of the towers, the hidden one at random.
    """
    towers = [build_network(config, observation, rng, config.init_scale) for _ in range(config.num_towers)]
    is_linear = config.aggregator == "linear"
    small = ValuesConfig(network="linear" if is_linear else "mlp", hidden=(HIDDEN_UNITS,), num_members=1)
    aggregator = build_network(small, Features(config.num_towers), rng, 1.0)
    if is_linear:
        for name, parameter in aggregator.named_parameters():
            if name.endswith("weight"):
                nn.init.constant_(parameter, 1.0 / config.num_towers)
    return TowerNetwork(towers, aggregator)


def with_towers(weights: Arrays, towers: Sequence[Arrays]) -> Arrays:
    """Returns an ensemble's weights with trained networks as its towers; `Ensemble.load_weights` checks that they fit.

    Args:
      weights: what `Ensemble.weights` returned, of an ensemble with as many towers.
      towers: the same of ensembles that were trained, of one network with one member each.
    """
    planted = dict(weights)
    for i, tower in enumerate(towers):
        planted |= {f"network.towers.{i}.{name.removeprefix('network.')}": array for name, array in tower.items()}
    return planted
