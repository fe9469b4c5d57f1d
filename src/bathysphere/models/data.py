"""What a world model learns from: random episodes on generated Sokoban boards."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from bathysphere.domains.base import Domain, States
from bathysphere.domains.sokoban.generator import generate_level
from bathysphere.models.config import DataConfig


class Transitions(NamedTuple):
    """Steps made in episodes: from `frames[before]` by `actions` to `frames[before + 1]`."""

    frames: States  # uint8 [N, S], the positions of one episode after the other
    before: NDArray[np.int64]  # [M], rows of frames: all but the last of each episode
    actions: NDArray[np.int64]  # [M]
    done: NDArray[np.bool_]  # [M], the step ended the episode

    def order(self, done_copies: int) -> NDArray[np.int64]:
        """Returns the numbers of all transitions, those that ended their episode `done_copies` more times."""
        return np.concatenate([np.arange(len(self.before)), np.repeat(np.flatnonzero(self.done), done_copies)])


def make_boards(config: DataConfig, *, held_out: bool, tick: Callable[[], None] = lambda: None) -> States:
    """Makes the boards to learn from or those held out, uint8 [n, S].

    Args:
      config: how many, and their size and seed. Board i depends on the seed and i only.
      held_out: which of the two kinds, which share no random numbers.
      tick: called after every board.
    """
    kind, count = (1, config.held_out) if held_out else (0, config.boards)
    stream = int(np.random.SeedSequence([config.seed, kind]).generate_state(1, np.uint64)[0])
    generators = [config.generator(number) for number in range(1, config.max_boxes + 1)]
    boards = np.empty((count, config.height * config.width), np.uint8)
    for index in range(count):
        number = np.random.default_rng([stream, index]).integers(len(generators))
        boards[index] = generate_level(generators[number], stream, index).level.grid.ravel()
        tick()
    return boards


def play_randomly(domain: Domain, starts: States, steps: int, rng: np.random.Generator) -> Transitions:
    """Plays one episode of uniform actions from each of `starts`, uint8 [n, S], until it ends or after `steps`."""
    num_episodes, num_actions = len(starts), len(domain.action_names)
    frames = np.empty((num_episodes, steps + 1, domain.state_size), np.uint8)
    frames[:, 0] = starts
    actions = rng.integers(num_actions, size=(num_episodes, steps))
    lengths = np.full(num_episodes, steps)
    done = np.zeros((num_episodes, steps), np.bool_)
    playing = np.arange(num_episodes)
    for step in range(steps):
        chosen = actions[playing, step]
        answer = domain.successors(frames[playing, step])
        rows = np.arange(len(playing))
        frames[playing, step + 1] = answer.states[rows, chosen]
        done[playing, step] = answer.terminal[rows, chosen]
        ended = playing[done[playing, step]]
        lengths[ended] = step + 1
        playing = playing[~done[playing, step]]
    is_played = np.arange(steps) < lengths[:, None]
    is_frame = np.arange(steps + 1) <= lengths[:, None]
    is_before = is_frame.copy()
    is_before[np.arange(num_episodes), lengths] = False
    return Transitions(frames[is_frame], np.flatnonzero(is_before[is_frame]), actions[is_played], done[is_played])
