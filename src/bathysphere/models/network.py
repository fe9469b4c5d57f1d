"""Networks that predict the next board: the authors' two-headed one, and one that predicts all actions at once."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.nn import functional

from bathysphere.models.config import ModelConfig
from bathysphere.values.initial import glorot

_SIDE = 5  # of the filters: a push reaches two cells from the player, and a cell must see as far
_STAY = 5.0  # logit with which cells keep their code at first
_SOLVED = -5.0  # logit of a cell keeping the board unsolved at first: for a hundred cells, solved or not is even


class Filter(nn.Conv2d):
    """A square filter that keeps the board's size, with Glorot weights drawn from `rng` and zero biases."""

    bias: nn.Parameter

    def __init__(self, inputs: int, outputs: int, side: int, rng: np.random.Generator) -> None:
        super().__init__(inputs, outputs, side, padding="same")
        weights = glorot((outputs, inputs, side, side), inputs * side**2, outputs * side**2, rng)
        _initialise(self.weight, self.bias, weights)

    def reset_parameters(self) -> None:
        """Draws nothing: PyTorch's own generator is left alone."""


class Dense(nn.Linear):
    """A dense layer on the last axis, initialised likewise."""

    def __init__(self, inputs: int, outputs: int, rng: np.random.Generator) -> None:
        super().__init__(inputs, outputs)
        _initialise(self.weight, self.bias, glorot((outputs, inputs), inputs, outputs, rng))

    def reset_parameters(self) -> None:
        """Draws nothing: PyTorch's own generator is left alone."""


def _initialise(weight: Tensor, bias: Tensor, drawn: NDArray[np.float32]) -> None:
    with torch.no_grad():
        weight.copy_(torch.from_numpy(drawn))
        bias.zero_()


class PaperNetwork(nn.Module):
    """The authors' network: board and action in, the next board and whether it is solved out.

    The action is given as one constant plane per action. Channels average over the board before the done head sees
    them, which makes "is any box left?" a matter of a hundredth of a unit.
    """

    def __init__(self, num_codes: int, num_actions: int, channels: int, rng: np.random.Generator) -> None:
        super().__init__()
        self.num_codes, self.num_actions = num_codes, num_actions
        self.first = Filter(num_codes + num_actions, channels, _SIDE, rng)
        self.second = Filter(channels, channels, _SIDE, rng)
        self.cells = Dense(channels, num_codes, rng)  # for every cell
        self.done = Dense(channels, 1, rng)  # for the average over the board

    def predict(self, boards: Tensor, actions: Tensor) -> tuple[Tensor, Tensor]:
        """Predicts one action from each board.

        Args:
          boards: cell codes, integers [n, H, W].
          actions: int64 [n].

        Returns:
          Logits of every code in every cell, [n, H, W, codes], and of done, [n].
        """
        planes = functional.one_hot(actions, self.num_actions)[:, None, None].expand(-1, *boards.shape[1:], -1)
        h = torch.cat([functional.one_hot(boards.long(), self.num_codes), planes], dim=3).float().permute(0, 3, 1, 2)
        h = self.second(self.first(h).relu_()).relu_().permute(0, 2, 3, 1)
        return self.cells(h), self.done(h.mean((1, 2))).flatten()

    def forward(self, boards: Tensor) -> tuple[Tensor, Tensor]:
        """Predicts all actions: logits [n, A, H, W, codes] and [n, A]."""
        actions = torch.arange(self.num_actions, device=boards.device).repeat(len(boards))
        cells, done = self.predict(boards.repeat_interleave(self.num_actions, dim=0), actions)
        every = (len(boards), self.num_actions)
        return cells.view(*every, *cells.shape[1:]), done.view(every)


class LocalNetwork(nn.Module):
    """One look at the board for all actions: a filter, then every cell by itself says what it becomes.

    The four actions are one rule, turned: the filter for the first action, turned by a quarter, is the filter for the
    second, and so on. At first nothing is believed to change. Every cell also says how likely it keeps the board
    unsolved, p; the board is solved if no cell does: P(done) is the product of all 1 - p. So one box that is left
    decides, wherever it is.
    """

    def __init__(self, num_codes: int, num_actions: int, channels: int, rng: np.random.Generator) -> None:
        super().__init__()
        self.num_codes, self.num_actions = num_codes, num_actions
        self.first = Filter(num_codes, channels, _SIDE, rng)  # as it is for the first action
        self.heads = Dense(channels, num_codes + 1, rng)
        self.stay = nn.Parameter(_STAY * torch.eye(num_codes))  # [code now, logit of code then]
        with torch.no_grad():
            self.heads.bias[-1] = _SOLVED

    def forward(self, boards: Tensor) -> tuple[Tensor, Tensor]:
        """Predicts all actions: logits [n, A, H, W, codes] and [n, A] for cell codes [n, H, W]."""
        return self._look(boards, range(self.num_actions))

    def predict(self, boards: Tensor, actions: Tensor) -> tuple[Tensor, Tensor]:
        """Predicts one action from each board, as `PaperNetwork.predict` does."""
        rows = [torch.nonzero(actions == action).flatten() for action in range(self.num_actions)]
        answers = [self._look(boards[chosen], [action]) for action, chosen in enumerate(rows)]
        back = torch.argsort(torch.cat(rows))
        return torch.cat([cells[:, 0] for cells, _ in answers])[back], torch.cat([done for _, done in answers])[back, 0]

    def _look(self, boards: Tensor, actions: Sequence[int]) -> tuple[Tensor, Tensor]:
        """Predicts the same actions from all boards: logits [n, actions, H, W, codes] and [n, actions]."""
        codes = functional.one_hot(boards.long(), self.num_codes).float()  # [n, H, W, codes], as filters like it
        filters = torch.cat([torch.rot90(self.first.weight, -action, (2, 3)) for action in actions])  # clockwise
        h = functional.conv2d(codes.permute(0, 3, 1, 2), filters, self.first.bias.repeat(len(actions)), padding="same")
        h = h.relu_().permute(0, 2, 3, 1)
        h = h.reshape(*boards.shape, len(actions), len(self.first.bias))
        heads = functional.linear(h, self.heads.weight, self.heads.bias).permute(0, 3, 1, 2, 4)
        surprise = functional.softplus(heads[..., -1]).sum((2, 3)).clamp(min=1e-6)  # -log P(done)
        return heads[..., :-1] + (codes @ self.stay)[:, None], -surprise - torch.log(-torch.expm1(-surprise))


Network = PaperNetwork | LocalNetwork


def build_network(config: ModelConfig, num_codes: int, num_actions: int, rng: np.random.Generator) -> Network:
    """Builds and initialises the network that a config describes."""
    kind = PaperNetwork if config.kind == "paper" else LocalNetwork
    return kind(num_codes, num_actions, config.channels, rng)


def num_parameters(network: Network) -> int:
    """Counts weights and biases."""
    return sum(math.prod(parameter.shape) for parameter in network.parameters())


def loss(
    cells: Tensor, done: Tensor, boards: Tensor, next_boards: Tensor, is_done: Tensor, kind: str, changed_weight: float
) -> Tensor:
    """Returns how wrong predictions are: mean cross-entropy over cells plus that of done, with equal weight.

    Args:
      cells, done: logits, as `predict` returns them.
      boards, next_boards: true codes before and after the step, integers [n, H, W].
      is_done: bool [n].
      kind: whether codes exclude each other ("softmax") or are judged one by one ("sigmoid").
      changed_weight: cells that change count that much, the others 1.
    """
    wanted = next_boards.long()
    if kind == "softmax":
        wrong = functional.cross_entropy(cells.flatten(0, 2), wanted.flatten(), reduction="none").view(wanted.shape)
    else:
        one_hot = functional.one_hot(wanted, cells.shape[3]).float()
        wrong = functional.binary_cross_entropy_with_logits(cells, one_hot, reduction="none").mean(3)
    weights = torch.where(boards == next_boards, 1.0, changed_weight)
    return (wrong * weights).mean() + functional.binary_cross_entropy_with_logits(done, is_done.float())
