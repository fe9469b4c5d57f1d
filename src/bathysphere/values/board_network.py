"""A value network for boards of any size: residual convolutions to which blank cells are nothing.

Cells of the blank category (walls, in Sokoban) are zero in every layer, exactly as what lies beyond the edge of the
board. So a board may be surrounded with blank cells, or have them cut off, without any change to its value; boards of
all sizes go through the same weights, and sums over the board instead of positions on it feed the heads.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional

from bathysphere.domains.base import Categories, ObservationSpec
from bathysphere.errors import BathysphereError
from bathysphere.values.config import ValuesConfig
from bathysphere.values.networks import Dense, parameter

SUM_SCALE = 1.0 / 32  # of sums over a board, so that heads read numbers of the size of the maxima beside them
_GRAIN = 8  # sides of boards that go through the network together are equal when divided by this and rounded up


class BoardNetwork(nn.Module):
    """A trunk that all members share, and heads: codes [n, H, W] to values [n, E], and logits [n, E, A] of policies.

    Args:
      config: layers, channels, members.
      observation: of boards, with a blank category.
      num_actions: A, if every member has a policy; else 0.
      rng: draws the weights.
      init_scale: multiplies the weights of the last layer.
    """

    def __init__(
        self,
        config: ValuesConfig,
        observation: Categories,
        num_actions: int,
        rng: np.random.Generator,
        init_scale: float,
    ) -> None:
        super().__init__()
        assert observation.blank is not None
        self.num_categories, self.blank = observation.num_categories, observation.blank
        self.num_members = config.num_members
        channels, kernel, inputs = config.conv_channels, config.conv_kernel, observation.num_categories - 1
        self.weights, self.biases, self.pooled_weights = nn.ParameterList(), nn.ParameterList(), nn.ParameterList()
        for layer in range(config.conv_layers):
            shape = (channels, inputs, kernel, kernel)
            self.weights.append(parameter(shape, inputs * kernel**2, channels * kernel**2, rng))
            self.biases.append(nn.Parameter(torch.zeros(channels)))
            if layer % 2 == 1:
                self.pooled_weights.append(parameter((channels, 2 * channels), 2 * channels, channels, rng))
            inputs = channels
        self.readout = parameter((2 * channels, channels, 1, 1), channels, 2 * channels, rng)
        self.readout_bias = nn.Parameter(torch.zeros(2 * channels))
        members, outputs = config.num_members, 1 + num_actions
        self.hidden = Dense(4 * channels, config.dense, members, True, True, rng)
        self.last = Dense(config.dense, outputs, members, False, True, rng, init_scale)

    def forward(self, codes: Tensor) -> Tensor:
        """Evaluates all members: [n, E, 1 + A], the value first."""
        parts = [(rows, self._pool_board(boards)) for rows, boards in by_size(codes, self.blank)]
        pooled = torch.cat([part for _, part in parts])[torch.cat([rows for rows, _ in parts]).argsort()]
        outputs: Tensor = self.last(self.hidden(pooled.t().unsqueeze(0)).relu_())
        return outputs.permute(2, 0, 1)

    def num_tensors(self) -> int:
        """Counts parameter tensors as separate networks would have them: the heads are stacked, the trunk is one."""
        heads = len(list(self.hidden.parameters())) + len(list(self.last.parameters()))
        return len(list(self.parameters())) + (self.num_members - 1) * heads

    def _pool_board(self, codes: Tensor) -> Tensor:
        """Returns what the heads read of boards [n, H, W]: sums and maxima over each, [n, 4 * channels]."""
        floor = (codes != self.blank).unsqueeze(1)
        is_seen = torch.arange(self.num_categories, device=codes.device) != self.blank
        one_hot = functional.one_hot(codes.long(), self.num_categories)[..., is_seen].float().permute(0, 3, 1, 2)
        mask = floor.float()
        num_cells = mask.sum((2, 3)).clamp(min=1.0)
        h = self._convolve(0, one_hot) * mask
        for i in range(1, len(self.weights), 2):
            active = h.relu()
            told = torch.cat([active.sum((2, 3)) / num_cells, active.amax((2, 3))], dim=1)
            inner = self._convolve(i, active) + (told @ self.pooled_weights[i // 2].t())[:, :, None, None]
            h = h + self._convolve(i + 1, inner.relu_() * mask) * mask
        read = functional.conv2d(h.relu(), self.readout, self.readout_bias).relu_() * mask
        return torch.cat([read.sum((2, 3)) * SUM_SCALE, read.amax((2, 3))], dim=1)

    def _convolve(self, i: int, h: Tensor) -> Tensor:
        return functional.conv2d(h, self.weights[i], self.biases[i], padding="same")


def by_size(codes: Tensor, blank: int) -> Iterator[tuple[Tensor, Tensor]]:
    """Sorts boards [n, H, W] by the size of what is not blank, and cuts off the rest.

    Yields:
      The rows of boards of about one size, [k], and the boards without blank rows and columns, [k, H', W'].
    """
    is_cell = codes != blank
    in_row, in_column = is_cell.any(2), is_cell.any(1)
    boxes = torch.stack([_extent(in_row), _extent(in_column)])  # [2, 2, n]: first, end of rows and of columns
    sizes = -(-(boxes[:, 1] - boxes[:, 0]) // _GRAIN)
    keys = sizes[0] * (codes.shape[2] + 1) + sizes[1]
    for key in torch.unique(keys).tolist():
        rows = torch.nonzero(keys == key).squeeze(1)
        (top, bottom), (left, right) = ((int(b[0].min()), int(b[1].max())) for b in boxes[:, :, rows])
        yield rows, codes[rows, top : max(bottom, top + 1), left : max(right, left + 1)]


def _extent(is_there: Tensor) -> Tensor:
    """Returns the first true entry of each row [n, k] and the one after the last, [2, n]; 0 and 0 without any."""
    places = torch.arange(is_there.shape[1], device=is_there.device)
    end = torch.where(is_there, places + 1, 0).amax(1)
    first = torch.where(is_there, places, is_there.shape[1]).amin(1).minimum(end)
    return torch.stack([first, end])


def build_board_network(
    config: ValuesConfig, observation: ObservationSpec, num_actions: int, rng: np.random.Generator, init_scale: float
) -> BoardNetwork:
    """Builds and initialises the network (Glorot uniform weights, zero biases); see `BoardNetwork`."""
    if not isinstance(observation, Categories) or len(observation.shape) != 2 or observation.blank is None:
        raise BathysphereError(
            f"values.network board reads a two-dimensional board of categories, one of them blank, but this domain "
            f"shows {observation}; use mlp or cnn."
        )
    return BoardNetwork(config, observation, num_actions, rng, init_scale)
