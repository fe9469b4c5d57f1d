"""A world that does not come with the package: what a user would write, in its smallest form."""

from dataclasses import dataclass

import numpy as np

from bathysphere.domains import DomainConfig
from bathysphere.domains.base import Features, Successors, as_rows


@dataclass(frozen=True)
class ChainConfig(DomainConfig):
    """What can be set about a chain."""

    length: int = 8
    """Links of the chain."""
    rewards: tuple[float, ...] = (1.0,)
    """Points for the last link."""


class Chain:
    """Links in a row, from the first to the last. Letting go at any link leads back to the first."""

    name = "chain"
    Config = ChainConfig
    state_size = 1
    action_names = ("on", "let-go")

    def __init__(self, config):
        self.config = config
        self.max_steps = 2 * config.length
        self.observation = Features(config.length)

    def initial(self, n, rng):
        return np.zeros((n, 1), np.uint8)

    def successors(self, states):
        link, last = as_rows(states, 1)[:, 0], self.config.length - 1
        ended = link == last
        after = np.stack([np.where(ended, link, link + 1), np.where(ended, link, 0)], axis=1).astype(np.uint8)
        arrived = after == last
        rewards = np.where(arrived & ~ended[:, None], sum(self.config.rewards), 0.0)
        return Successors(after[:, :, None], rewards, arrived, arrived)

    def observe(self, states):
        return np.eye(self.config.length, dtype=np.float32)[as_rows(states, 1)[:, 0]]
