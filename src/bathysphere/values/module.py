"""The value ensemble as a plain PyTorch module, for programs that want nothing else of this package."""

from __future__ import annotations

import copy

import torch
from torch import Tensor, nn

from bathysphere.domains.base import Categories, ObservationSpec
from bathysphere.values.board_network import BoardNetwork


class ValueModule(nn.Module):
    """Observations [n, ...], as a tensor of any number type, to every member's value, float32 [n, E].

    Args:
      network: of all members.
      observation: what it reads.
      prior: added to what the network says; None without one.
      prior_scale: what the prior is multiplied by.
      scale: what the sum is multiplied by.
    """

    def __init__(
        self,
        network: nn.Module,
        observation: ObservationSpec,
        prior: nn.Module | None = None,
        prior_scale: float = 0.0,
        scale: float = 1.0,
    ) -> None:
        super().__init__()
        self.network, self.prior = copy.deepcopy(network), copy.deepcopy(prior)
        self.prior_scale, self.scale = prior_scale, scale
        self._is_board = isinstance(network, BoardNetwork)
        self._dtype = torch.int64 if isinstance(observation, Categories) else torch.float32

    def forward(self, observations: Tensor) -> Tensor:
        """Evaluates all members."""
        inputs = observations.to(self._dtype)
        values: Tensor = self.network(inputs)
        if self._is_board:
            values = values[:, :, 0]  # the rest is policies
        if self.prior is not None:
            values = values + self.prior_scale * self.prior(inputs)
        return values * self.scale if self.scale != 1.0 else values


class TableNetwork(nn.Module):
    """A table, float32 [R, E], as a network: one category [n, ...] to [n, E]."""

    def __init__(self, table: Tensor) -> None:
        super().__init__()
        self.table = nn.Parameter(table)

    def forward(self, codes: Tensor) -> Tensor:
        """Looks the categories up."""
        return self.table[codes.flatten()]
