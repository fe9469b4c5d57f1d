"""Small models and wrong ones, for tests."""

from __future__ import annotations

import zlib

import numpy as np

from bathysphere.domains.base import Successors
from bathysphere.domains.sokoban import GeneratorConfig, Sokoban, SokobanConfig, generate
from bathysphere.domains.sokoban.rules import PLAYER
from bathysphere.models.config import DataConfig, ModelConfig, TrainingConfig
from bathysphere.models.data import make_boards, play_randomly
from bathysphere.models.evaluation import positions
from bathysphere.models.trainer import ModelTrainer, make_domain

DATA = DataConfig(height=6, width=6, max_boxes=1, boards=60, episodes=8, held_out=20)
TRAINING = TrainingConfig(
    model=ModelConfig(channels=12), data=DATA, batch_size=64, learning_rate=2e-2, updates=400, report_every=100
)


def make_model_trainer(config: TrainingConfig = TRAINING) -> ModelTrainer:
    data, domain = config.data, make_domain(config.data)
    starts, held_out = (np.repeat(make_boards(data, held_out=which), data.episodes, axis=0) for which in (False, True))
    played = play_randomly(domain, starts, data.max_steps, np.random.default_rng([data.seed, 0]))
    seen = positions(domain, held_out, data.max_steps, np.random.default_rng([data.seed, 1]))
    return ModelTrainer(config, played, seen)


def small_domain() -> Sokoban:
    """Eight small boards with one box, some of which are solved by chance."""
    return Sokoban(SokobanConfig(max_steps=25), levels=generate(8, GeneratorConfig(height=7, width=7, num_boxes=1)))


class Erring:
    """The rules of a domain, broken in one way for about a third of all states and actions."""

    KINDS = ("wrong_frame", "wrong_reward", "false_end", "missed_end", "impossible_board")

    def __init__(self, domain: Sokoban, kind: str) -> None:
        self.domain, self.kind = domain, kind

    def successors(self, states: np.ndarray) -> Successors:
        out = self.domain.successors(states)
        next_states, rewards, terminal, solved = (part.copy() for part in out)
        for i, row in enumerate(states):
            for action in range(4):
                if (zlib.crc32(row.tobytes()) + action) % 3:
                    continue
                match self.kind:
                    case "wrong_frame":
                        next_states[i, action] = out.states[i, (action + 1) % 4]
                    case "wrong_reward":
                        rewards[i, action] += 3.0
                    case "false_end":
                        terminal[i, action] = solved[i, action] = True
                    case "missed_end":
                        terminal[i, action] = solved[i, action] = False
                    case "impossible_board":
                        next_states[i, action, 0] = PLAYER  # a second one, in the corner of the border
        return Successors(next_states, rewards, terminal, solved)
