"""A world without success: every step costs, and the way ends at the last cell. It may also call every end solved."""

from dataclasses import dataclass

import numpy as np

from bathysphere.domains import DomainConfig
from bathysphere.domains.base import Categories, Successors, as_rows


@dataclass(frozen=True)
class TollConfig(DomainConfig):
    """What can be set about the road."""

    length: int = 5
    """Cells of the road."""
    cost: float = 1.0
    """Of every step."""
    ends_solve: bool = False
    """Whether the last cell counts as solved."""


class Toll:
    """Cells in a row; an episode begins in the first and ends in the last, or after 20 steps."""

    name = "toll"
    Config = TollConfig
    state_size = 1
    action_names = ("back", "on")
    max_steps = 20

    def __init__(self, config=None):
        self.config = config or TollConfig()
        self.observation = Categories((1,), self.config.length)

    def initial(self, n, rng):
        return np.zeros((n, 1), np.uint8)

    def successors(self, states):
        cell, last = as_rows(states, 1)[:, 0].astype(int), self.config.length - 1
        after = np.clip(cell[:, None] + np.array([-1, 1]), 0, last)
        after[cell == last] = last
        ended = after == last
        rewards = np.where((cell == last)[:, None], 0.0, -self.config.cost) * np.ones(after.shape)
        return Successors(after.astype(np.uint8)[:, :, None], rewards, ended, ended & self.config.ends_solve)

    def observe(self, states):
        return as_rows(states, 1).astype(np.int32)
