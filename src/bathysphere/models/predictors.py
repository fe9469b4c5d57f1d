"""Networks that a model learns with while acting: of Sokoban's boards, and of any world's rows."""

from __future__ import annotations

import math
from typing import Protocol

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional

from bathysphere.domains import Sokoban
from bathysphere.domains.base import Domain
from bathysphere.models.config import ModelConfig
from bathysphere.models.model_file import BoardSpec
from bathysphere.models.network import Dense, LocalNetwork
from bathysphere.models.predictable import check_predictable
from bathysphere.models.step_replay import MOST_KINDS
from bathysphere.values.initial import glorot

_CHANGED_WEIGHT = 3.0  # in the loss, of bits that a step changes: they are rare
_WIDTH = 128  # of hidden layers
_NO_OBJECTION = -5.0  # of a cell's code to an end, at first; as much as softplus makes of it
_STAY = 5.0  # minus the logit with which bits change at first


class Predictor(Protocol):
    """Predicts steps of one world. It is a PyTorch module as well."""

    learning_rate: float  # of Adam, at first

    def loss(self, before: Tensor, actions: Tensor, after: Tensor, kinds: Tensor, terminal: Tensor) -> Tensor:
        """Returns how wrong predictions are.

        Args:
          before, after: rows, uint8 [n, S].
          actions, kinds: int64 [n].
          terminal: of every kind seen, bool.
        """
        ...

    def predict(self, states: Tensor, terminal: Tensor) -> tuple[Tensor, Tensor]:
        """Predicts all actions: rows, uint8 [n, A, S], and kinds, int64 [n, A], for rows uint8 [n, S]."""
        ...


class BoardPredictor(nn.Module):
    """`LocalNetwork` for the next board of Sokoban, and by that board, cell by cell, whether it is an end.

    Each code of a cell objects to the end as strongly as was learnt, and all objections add up to -log P(end). So a few
    ends are enough to learn from. It knows two kinds of step: the first seen that ends, and that does not.
    """

    learning_rate = 2e-2

    def __init__(self, domain: Sokoban, rng: np.random.Generator) -> None:
        super().__init__()
        world = BoardSpec.of(domain)  # refuses rewards that it cannot predict
        self.shape = (world.height, world.width)
        self.network = LocalNetwork(world.num_codes, len(world.actions), ModelConfig().channels, rng)
        self.objections = nn.Parameter(torch.full((world.num_codes,), _NO_OBJECTION))

    def loss(self, before: Tensor, actions: Tensor, after: Tensor, kinds: Tensor, terminal: Tensor) -> Tensor:
        """As `Predictor.loss`. The first half, in which ends are frequent, teaches ends, the second half boards."""
        half = len(actions) // 2
        surprise = self._surprise(after[:half]).clamp(min=1e-6)
        wrong_end = torch.where(terminal[kinds[:half]], surprise, -torch.log(-torch.expm1(-surprise))).mean()
        cells, _ = self.network.predict(before[half:].view(-1, *self.shape), actions[half:])
        return functional.cross_entropy(cells.flatten(0, 2), after[half:].long().flatten()) + wrong_end

    def predict(self, states: Tensor, terminal: Tensor) -> tuple[Tensor, Tensor]:
        """As `Predictor.predict`."""
        cells, _ = self.network(states.view(-1, *self.shape))
        rows = cells.argmax(dim=-1).flatten(2).to(torch.uint8)
        is_end = (self._surprise(rows) < math.log(2)) & terminal.any()
        return rows, torch.where(is_end, terminal.int().argmax(), (~terminal).int().argmax())

    def _surprise(self, boards: Tensor) -> Tensor:
        """Returns -log P(end), [...], of boards that a step leads to, uint8 [..., S]."""
        return functional.softplus(self.objections)[boards.long()].sum(dim=-1)


class RowsTrunk(nn.Module):
    """Two hidden layers on the bytes of a row, each one-hot."""

    learning_rate = 2e-3

    def __init__(self, state_size: int, num_actions: int, rng: np.random.Generator) -> None:
        super().__init__()
        self.state_size, self.num_actions = state_size, num_actions
        # As wide at first as one-hot inputs make them, of which every row has `state_size`.
        first = glorot((256 * state_size, _WIDTH), state_size, _WIDTH, rng)
        self.first = nn.Parameter(torch.from_numpy(first))  # a row for every value of every byte
        self.second = Dense(_WIDTH, _WIDTH, rng)

    def hidden(self, states: Tensor) -> Tensor:
        """Returns what follows from rows, uint8 [n, S], for all actions: [n, width]."""
        inputs = states.long() + 256 * torch.arange(self.state_size)
        h = functional.embedding_bag(inputs, self.first, mode="sum").relu()
        deeper: Tensor = self.second(h).relu()
        return deeper


class RowsPredictor(RowsTrunk):
    """Says, for every action, which bits of a row change, and of which kind the step is.

    At first nothing is believed to change. What would lead on to a row with a byte that no step has begun with is no
    place to go on from: there, too, nothing is believed to change.
    """

    powers: Tensor
    seen: Tensor

    def __init__(self, state_size: int, num_actions: int, rng: np.random.Generator) -> None:
        super().__init__(state_size, num_actions, rng)
        self.bits = Dense(_WIDTH, num_actions * state_size * 8, rng)
        self.kinds = Dense(_WIDTH, num_actions * MOST_KINDS, rng)
        with torch.no_grad():
            self.bits.bias.fill_(-_STAY)
        self.register_buffer("powers", 2 ** torch.arange(8), persistent=False)
        self.register_buffer("seen", torch.zeros((state_size, 256), dtype=torch.bool))  # values of each byte

    def forward(self, states: Tensor) -> tuple[Tensor, Tensor]:
        """Returns logits for all actions: that bits change, [n, A, S, 8], and of kinds, [n, A, MOST_KINDS]."""
        h, every = self.hidden(states), (len(states), self.num_actions)
        return self.bits(h).view(*every, self.state_size, 8), self.kinds(h).view(*every, MOST_KINDS)

    def loss(self, before: Tensor, actions: Tensor, after: Tensor, kinds: Tensor, terminal: Tensor) -> Tensor:
        """As `Predictor.loss`."""
        self.seen[torch.arange(self.state_size), before.long()] = True
        bits, kind = (part[torch.arange(len(actions)), actions] for part in self(before))
        changed = ((before ^ after)[..., None] & self.powers) != 0
        wrong = functional.binary_cross_entropy_with_logits(bits, changed.float(), reduction="none")
        wrong = torch.where(changed, _CHANGED_WEIGHT * wrong, wrong).sum((1, 2)).mean()
        return wrong + functional.cross_entropy(kind[:, : len(terminal)], kinds)

    def predict(self, states: Tensor, terminal: Tensor) -> tuple[Tensor, Tensor]:
        """As `Predictor.predict`."""
        bits, kinds = self(states)
        flipped = ((bits > 0) * self.powers).sum(dim=-1).to(torch.uint8)
        rows, kinds = states[:, None] ^ flipped, kinds[..., : len(terminal)].argmax(dim=-1)
        is_possible = terminal[kinds] | self.seen[torch.arange(self.state_size), rows.long()].all(dim=-1)
        return torch.where(is_possible[..., None], rows, states[:, None]), kinds


class OutcomesPredictor(RowsTrunk):
    """Says, for every action, how probable each of a list of outcomes is."""

    def __init__(self, state_size: int, num_actions: int, most_outcomes: int, rng: np.random.Generator) -> None:
        super().__init__(state_size, num_actions, rng)
        self.outcomes = Dense(_WIDTH, num_actions * most_outcomes, rng)

    def forward(self, states: Tensor) -> Tensor:
        """Returns logits for all actions, [n, A, most_outcomes]."""
        logits: Tensor = self.outcomes(self.hidden(states)).view(len(states), self.num_actions, -1)
        return logits


def make_predictor(domain: Domain, rng: np.random.Generator) -> BoardPredictor | RowsPredictor:
    """Returns an untrained network for the steps of `domain`."""
    if isinstance(domain, Sokoban):
        return BoardPredictor(domain, rng)
    check_predictable(domain)
    return RowsPredictor(domain.state_size, len(domain.action_names), rng)
