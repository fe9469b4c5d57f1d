"""What a trainer does with finished episodes: remember them, learn as much as is due, save all of it."""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from bathysphere.domains.base import AskedModel, Domain, LearningModel, Model, States, Successors
from bathysphere.errors import BathysphereError
from bathysphere.learning.config import LearningConfig
from bathysphere.learning.graph_errors import graph_errors
from bathysphere.learning.hindsight import with_hindsight
from bathysphere.learning.lookahead import look_ahead
from bathysphere.learning.masks import draw_mask
from bathysphere.learning.progress import Progress
from bathysphere.learning.replay import Replay, Sample
from bathysphere.learning.targets import num_targets, policy_targets, targets
from bathysphere.learning.transitions import TransitionReplay
from bathysphere.planning import BestFirstConfig, Episode, PlannerSettings
from bathysphere.planning.episode import SeenStates
from bathysphere.planning.planner import Work
from bathysphere.storage.state import (
    Arrays,
    check_kinds,
    generator_state,
    prefixed,
    require,
    restore_generator,
    section,
)
from bathysphere.values.action_ensemble import ActionEnsemble
from bathysphere.values.batch import Batch, UpdateStats
from bathysphere.values.ensemble import Ensemble

MAX_UPDATES_AT_ONCE = 256  # bounds the memory of one burst of updates
WALKS_AT_ONCE = 4096  # the same for entries drawn backward, many enough to come to the beginnings of episodes


class Learner(ABC):
    """The half of a trainer that learns. How episodes are played is the other half.

    Args:
      domain: the world.
      values: the ensemble to train.
      search: how episodes are planned.
      learning: how episodes become updates.
      seed: decides masks, relabelling and batches.
      model: what planning believes happens; the domain itself if not given.
    """

    def __init__(
        self,
        domain: Domain,
        values: Ensemble,
        search: PlannerSettings,
        learning: LearningConfig,
        seed: np.random.SeedSequence,
        model: Model | None = None,
    ) -> None:
        self.domain, self.values, self.search, self.learning = domain, values, search, learning
        self.model: Model = domain if model is None else model
        if isinstance(self.model, LearningModel) and type(search) is BestFirstConfig:
            raise BathysphereError(
                "A model that is learnt while acting needs a planner that plans again when things turn out otherwise: "
                "mcts or replan, not best-first."
            )
        # Found out once: to ask an object what it offers takes as long as to remember an episode.
        self._asked_model = self.model if isinstance(self.model, AskedModel) else None
        learns_from_episodes = isinstance(self.model, LearningModel) and self._asked_model is None
        self._learning_model = cast(LearningModel, self.model) if learns_from_episodes else None
        usual = search.max_steps or domain.max_steps
        self.max_steps = min(learning.max_steps or usual, usual)  # of one episode
        if learning.graph_states > self.max_steps:
            raise BathysphereError(
                f"learning.graph_states is {learning.graph_states}, but replay has room for the {self.max_steps} steps "
                "of an episode; lower it, or let episodes be longer."
            )
        self._num_actions = len(domain.action_names) if values.has_policy else 0
        self.replay = self._make_replay()
        self.progress = Progress()
        self.last_update: UpdateStats | None = None
        self.learning_seconds = 0.0  # in all that is not playing
        self.update_seconds = 0.0  # of them, in the ensemble's own updates
        self._rng = np.random.default_rng(seed)

    def _make_replay(self) -> Replay:
        learning, num_members = self.learning, self.values.num_members
        sizes = self.domain.state_size, num_members, self.max_steps
        if isinstance(self.values, ActionEnsemble):
            if learning.symmetries:
                raise BathysphereError(
                    "learning.symmetries is for values of states, and the planner none has values of actions. Turn it "
                    "off: --learning.no-symmetries."
                )
            return TransitionReplay(learning.replay, *sizes, learning.num_steps, self.search.discount)
        return Replay(learning.replay, *sizes, num_targets(learning.target, num_members), self._num_actions)

    @abstractmethod
    def advance(self) -> list[Episode] | None:
        """Goes on for a moment; returns the episodes that finished, None if nothing has happened yet."""

    @property
    @abstractmethod
    def work(self) -> Work:
        """What planning has cost so far."""

    def columns(self) -> dict[str, Any]:
        """Returns columns for a row of the metrics about how episodes are played; called once for each row."""
        return {} if self._asked_model is None else graph_errors(self._asked_model, self.domain)

    def close(self) -> None:  # noqa: B027 (most have nothing to end)
        """Ends whatever plays episodes elsewhere."""

    @property
    def _play_settings(self) -> PlannerSettings:
        """How episodes of training are planned."""
        return self.search.for_training(self.max_steps)

    @property
    def _graph_states(self) -> int | None:
        """Further states of each search that planners hand on; None if they need not look at their graphs."""
        learning = self.learning
        return learning.graph_states if learning.target == "graph" or learning.graph_states else None

    def _take(self, episodes: Sequence[Episode]) -> None:
        """Remembers episodes that have just finished, then makes all updates that are due."""
        began = time.perf_counter()
        for episode in episodes:
            self.progress.record(episode)
            if self._learning_model is not None:
                learn_from(episode, self._learning_model)
            self._remember(episode)
        if episodes:
            self._learn()
        self.learning_seconds += time.perf_counter() - began

    def _remember(self, episode: Episode) -> None:
        learning = self.learning
        kept = with_hindsight(episode, self.domain, learning.hindsight, self._rng)
        # The search was after the old goal, so an episode that reached a new one learns from what it returned.
        has_new_goal = kept is not episode and bool(kept.rewards.any())
        mask = draw_mask(learning.mask, len(kept), self.values.num_members, self._rng)
        solved = kept.solved or (has_new_goal and learning.hindsight_as == "solved")
        if isinstance(self.replay, TransitionReplay):
            self.replay.add_episode(kept, mask, solved, has_new_goal or not kept.truncated)
            return
        values = targets(kept, "factual_rewards" if has_new_goal else learning.target, self.search.discount)
        if has_new_goal:  # what it returned, the same for all members
            values = np.broadcast_to(values, (len(kept), num_targets(learning.target, self.values.num_members)))
        policy = policy_targets(kept, kept.solved or has_new_goal, self._num_actions) if self._num_actions else None
        self.replay.add(kept.states, values, mask, solved, policy)
        if episode.seen is not None and len(episode.seen.states):
            self._remember_seen(episode.seen)

    def _remember_seen(self, seen: SeenStates) -> None:
        """Keeps further states of a search, in the class of unsolved episodes: they lie beside solutions."""
        mask = draw_mask(self.learning.mask, len(seen.states), self.values.num_members, self._rng)
        policy = np.zeros((len(seen.states), self._num_actions)) if self._num_actions else None
        has_own_targets = self.learning.target == "bootstrap_members"
        values = seen.values if has_own_targets else seen.values.mean(axis=1, keepdims=True)
        self.replay.add(seen.states, values, mask, False, policy)

    def _learn(self) -> None:
        """Catches up: one update per `steps_per_update` steps of finished episodes, after `min_episodes`."""
        learning, progress = self.learning, self.progress
        due = self._num_due() - progress.updates
        at_once = learning.renew_every if self._looks_ahead else MAX_UPDATES_AT_ONCE
        drawn = WALKS_AT_ONCE if learning.replay.sampling == "backward" else at_once
        while due > 0:
            sample = self.replay.sample(min(due, drawn), learning.batch_size, self._rng)
            if learning.mask.kind == "split":
                sample = sample.split()
            if learning.symmetries:
                sample = sample.transformed(self.domain, self._rng)
            for first in range(0, len(sample.states), at_once):
                batch = self._lessons(sample.part(first, first + at_once))
                began = time.perf_counter()
                self.last_update = self.values.update_many(batch)
                self.update_seconds += time.perf_counter() - began
            progress.updates += len(sample.states)
            due -= len(sample.states)

    def _lessons(self, sample: Sample) -> Batch:
        """Returns what members learn from drawn entries; with targets of the newest values, if they look ahead."""
        if isinstance(self.replay, TransitionReplay) and isinstance(self.values, ActionEnsemble):
            return self.replay.lessons(sample, self.domain, self.values)
        batch = sample.observed(self.domain)
        if self.learning.target == "lookahead":
            return batch._replace(targets=self._look_ahead(sample.states))
        return batch

    def _imagine(self, num_states: int) -> None:
        """Counts states for which the model was asked: for all actions of each."""
        self.progress.imagined_steps += num_states * len(self.domain.action_names)

    @property
    def _looks_ahead(self) -> bool:
        """Whether targets are computed from the newest values when a batch is drawn."""
        return isinstance(self.replay, TransitionReplay) or self.learning.target == "lookahead"

    def _look_ahead(self, states: States) -> NDArray[np.float32]:
        """Returns targets, float32 [u, b, E], for states uint8 [u, b, S]."""
        rows = states.reshape(-1, states.shape[-1])
        self._imagine(len(rows))
        found = look_ahead(rows, self.domain, self.model, self.values, self.search.discount)
        return found.reshape(*states.shape[:2], -1)

    def state_dict(self) -> dict[str, NDArray[Any]]:
        """Returns everything a resumed trainer needs to go on bit for bit."""
        state: Arrays = {"rng": generator_state(self._rng)}
        for part, owner in self._parts().items():
            state |= prefixed(part, owner.state_dict())
        return state

    def load_state_dict(self, state: Mapping[str, NDArray[Any]]) -> None:
        """Restores what `state_dict` returned; the trainer must have been made with the same settings."""
        check_kinds(state, self.state_dict())
        for part, owner in self._parts().items():
            owner.load_state_dict(section(state, part))
        restore_generator(self._rng, state["rng"])
        require(self.progress.updates == self._num_due(), "its updates do not follow from its steps")

    def _num_due(self) -> int:
        """Returns how many updates there should have been by now.

        As many as keep updates * steps_per_update below the steps received, and one to reach them.
        """
        if self.progress.episodes <= self.learning.min_episodes:
            return 0
        return int(np.ceil(self.progress.learnt_steps / self.learning.steps_per_update))

    def _parts(self) -> dict[str, Any]:
        """Returns everything that is saved besides the generator, by how its names begin."""
        parts = {"values.": self.values, "replay.": self.replay, "progress.": self.progress}
        return parts | ({"model.": self.model} if isinstance(self.model, LearningModel) else {})


def learn_from(episode: Episode, model: LearningModel) -> None:
    """Has a model learn from the steps of a finished episode."""
    assert episode.last_state is not None
    after = np.concatenate([episode.states[1:], episode.last_state[None]])
    ends = np.zeros((2, len(episode)), np.bool_)
    ends[:, -1] = not episode.truncated, episode.solved
    model.learn(episode.states, episode.actions, Successors(after, episode.rewards, *ends))
