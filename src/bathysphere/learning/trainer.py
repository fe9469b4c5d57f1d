"""The training loop: play a move everywhere, remember finished games, learn as much as is due."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bathysphere.domains.base import Domain, Model
from bathysphere.learning.config import LearningConfig
from bathysphere.learning.hindsight import with_hindsight
from bathysphere.learning.masks import draw_mask
from bathysphere.learning.progress import Progress
from bathysphere.learning.replay import Replay
from bathysphere.learning.targets import num_targets, targets
from bathysphere.planning import Crew, Episode, SearchConfig
from bathysphere.storage.state import generator_state, restore_generator, section
from bathysphere.values.batch import UpdateStats
from bathysphere.values.ensemble import Ensemble

MAX_UPDATES_AT_ONCE = 256  # bounds the memory of one burst of updates


class Trainer:
    """Playing and learning, interleaved deterministically: everything follows from the seed.

    Args:
      domain: the world.
      values: the ensemble to train.
      search: how games are planned.
      learning: how games become updates.
      batch, lanes, processes, model: as for `Crew`.
      seed: decides start states, ties, members drawn, masks and batches (not the ensemble's initial weights).
    """

    def __init__(
        self,
        domain: Domain,
        values: Ensemble,
        search: SearchConfig,
        learning: LearningConfig,
        *,
        batch: int = 1,
        lanes: int = 1,
        processes: int = 1,
        seed: int | np.random.SeedSequence = 0,
        model: Model | None = None,
    ) -> None:
        sequence = seed if isinstance(seed, np.random.SeedSequence) else np.random.SeedSequence(seed)
        play_seed, learn_seed = sequence.spawn(2)
        self.domain, self.values, self.search, self.learning = domain, values, search, learning
        usual = search.max_steps or domain.max_steps
        self.max_steps = min(learning.max_steps or usual, usual)  # of one game
        self.crew = Crew(
            domain,
            values,
            replace(search, max_steps=self.max_steps, patience=0.0),  # waits would fill the replay with one state
            batch=batch,
            seed=play_seed,
            lanes=lanes,
            processes=processes,
            model=model,
            steady=learning.steady_values,
        )
        width = num_targets(learning.target, values.num_members)
        self.replay = Replay(learning.replay, domain.state_size, values.num_members, self.max_steps, width)
        self.progress = Progress()
        self.last_update: UpdateStats | None = None
        self.learning_seconds = 0.0  # in all that is not playing
        self.update_seconds = 0.0  # of them, in the ensemble's own updates
        self._batch = batch
        self._rng = np.random.default_rng(learn_seed)

    def advance(self) -> list[Episode]:
        """Makes one move in every game, then all updates that are due; returns the games that finished."""
        episodes = self.crew.step()
        self.progress.env_steps += self._batch
        began = time.perf_counter()
        for episode in episodes:
            self.progress.record(episode)
            self._remember(episode)
        if episodes:
            self._learn()
        self.learning_seconds += time.perf_counter() - began
        return episodes

    def _remember(self, episode: Episode) -> None:
        learning = self.learning
        game = with_hindsight(episode, self.domain, learning.hindsight, self._rng)
        # The search was after the old goal, so a game that reached a new one learns from what it returned.
        has_new_goal = game is not episode and bool(game.rewards.any())
        values = targets(game, "factual_rewards" if has_new_goal else learning.target, self.search.discount)
        values = np.broadcast_to(values, (len(game), num_targets(learning.target, self.values.num_members)))
        mask = draw_mask(learning.mask, len(game), self.values.num_members, self._rng)
        solved = game.solved or (has_new_goal and learning.hindsight_as == "solved")
        self.replay.add(game.states, values, mask, solved)

    def _learn(self) -> None:
        """Catches up: one update per `steps_per_update` real steps of finished games, after `min_games`."""
        learning, progress = self.learning, self.progress
        if progress.episodes <= learning.min_games:
            return
        # As many updates as keep updates * steps_per_update below the steps received, and one to reach them.
        due = int(np.ceil(progress.learnt_steps / learning.steps_per_update)) - progress.updates
        while due > 0:
            num = min(due, MAX_UPDATES_AT_ONCE)
            sample = self.replay.sample(num, learning.batch_size, self._rng)
            if learning.mask.kind == "split":
                sample = sample.split()
            if learning.symmetries:
                sample = sample.transformed(self.domain, self._rng)
            batch = sample.observed(self.domain)
            began = time.perf_counter()
            self.last_update = self.values.update_many(batch)
            self.update_seconds += time.perf_counter() - began
            progress.updates += num
            due -= num

    def state_dict(self) -> dict[str, NDArray[Any]]:
        """Returns everything a resumed trainer needs to go on bit for bit."""
        state = {
            f"{part}.{name}": array
            for part, arrays in (
                ("values", self.values.state_dict()),
                ("replay", self.replay.state_dict()),
                ("crew", self.crew.state_dict()),
                ("progress", self.progress.state_dict()),
            )
            for name, array in arrays.items()
        }
        return {**state, "rng": generator_state(self._rng)}

    def load_state_dict(self, state: Mapping[str, NDArray[Any]]) -> None:
        """Restores what `state_dict` returned; the trainer must have been made with the same settings."""
        for part, owner in (
            ("values.", self.values),
            ("replay.", self.replay),
            ("crew.", self.crew),
            ("progress.", self.progress),
        ):
            owner.load_state_dict(section(state, part))
        restore_generator(self._rng, state["rng"])
