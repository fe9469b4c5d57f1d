"""Play cut into numbered blocks: a fixed number of whole episodes, played with one version of the weights.

A block is a function of its number, these weights and the run's seed. So it does not matter who plays it, when, or how
often it is tried again: a run in one process, on many machines, and with machines that die is the same run.
"""

from __future__ import annotations

import copy
import os
import platform
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import NamedTuple, Protocol

import numpy as np

from bathysphere.domains.base import Domain, LearningModel, Model
from bathysphere.domains.estimated import EstimatedChance
from bathysphere.errors import BathysphereError
from bathysphere.planning import Episode, PlannerSettings
from bathysphere.planning.planner import Planner, TimedSteps, Work, make_planner
from bathysphere.planning.start_states import find_starts
from bathysphere.planning.transport import Folded, fold, unfold
from bathysphere.storage.state import Arrays
from bathysphere.values.ensemble import Ensemble


def check_playable(domain: Domain) -> None:
    """Refuses worlds whose answers depend on what was asked before: a block would depend on who plays it."""
    if isinstance(domain, EstimatedChance):
        raise BathysphereError(
            f"{domain.name} cannot be played in blocks: how probable its outcomes are is counted by the one process "
            "that plays. Leave out scale.block, --workers and --ray."
        )


class PlayedBlock(NamedTuple):
    """What a block leaves behind, and what it has cost."""

    number: int
    folded: Folded  # episodes in order of starting; `index` counts the run's
    work: Work
    seconds: float
    worker: str  # who played it: machine and process

    def episodes(self) -> list[Episode]:
        """Returns the episodes; their search values are those of every member, or the mean, as the player was told."""
        return unfold(self.folded)


class Knowledge(NamedTuple):
    """What a block is played with: all that learning has changed."""

    weights: Arrays  # of the values
    model: Arrays | None = None  # of a model that is learnt while acting


class Players(Protocol):
    """Those who play blocks: this process, others, or a cluster."""

    num_workers: int
    """Blocks that are played at the same time, at most."""
    num_restarts: int
    """How often a worker was lost, and another took its place."""

    def submit(self, number: int, version: int, knowledge: Knowledge) -> None:
        """Orders block `number`, to be played with `knowledge`, which is number `version`. Does not wait."""
        ...

    def take(self, number: int, seconds: float) -> PlayedBlock | None:
        """Returns block `number`, which was ordered, once it is played; None if that takes longer than `seconds`."""
        ...

    def look_after(self) -> None:
        """Keeps those who play busy, without waiting; the learner says it again and again while it learns."""
        ...

    def close(self) -> None:
        """Ends whatever blocks are played in."""
        ...


class BlockPlayer:
    """Plays any block of a run. It can be pickled, and plays the same blocks wherever it is.

    Args:
      domain: the world.
      values: an ensemble of the run's; its weights do not matter. It belongs to the player from now on.
      config: how episodes are planned.
      batch: episodes played at once, at most.
      size: episodes of a block.
      seed: of all play in the run.
      model: as for `MCTS`; of one that is learnt while acting, a copy is made.
      graph_states: as for `MCTS`.
      all_members: whether episodes keep every member's search values; otherwise their mean.
    """

    def __init__(
        self,
        domain: Domain,
        values: Ensemble,
        config: PlannerSettings,
        *,
        batch: int,
        size: int,
        seed: np.random.SeedSequence,
        model: Model | None = None,
        graph_states: int | None = None,
        all_members: bool = False,
    ) -> None:
        self.domain, self.config, self.size, self.all_members = domain, config, size, all_members
        self._values, self._batch, self._seed = values, min(batch, size), seed
        self._model = copy.deepcopy(model) if isinstance(model, LearningModel) else model
        self._graph_states = graph_states
        self._starts = find_starts(None, domain, seed)  # one stream for all blocks

    def play(self, number: int, knowledge: Knowledge) -> PlayedBlock:
        """Plays a block."""
        block = BlockInPlay(self, number, knowledge)
        while (played := block.go_on()) is None:
            pass
        return played

    def plan(self, number: int, knowledge: Knowledge) -> Planner:
        """Returns the planner of a block, ready to begin. There must be one at a time: all use the same values."""
        self._values.load_weights(knowledge.weights)
        if knowledge.model is not None:
            assert isinstance(self._model, LearningModel)
            self._model.load_state_dict(knowledge.model)
        seed = np.random.SeedSequence(self._seed.entropy, spawn_key=(*self._seed.spawn_key, number))
        return make_planner(
            self.domain,
            self._values,
            self.config,
            batch=self._batch,
            seed=seed,
            model=self._model,
            num_episodes=self.size,
            starts=self._starts,
            worker=number * self.size,  # so that its episodes have their numbers among those of the run
            graph_states=self._graph_states,
        )


class BlockInPlay:
    """A block that is being played.

    With one thread of PyTorch's, because sums over several threads can differ in their last bits.
    """

    def __init__(self, player: BlockPlayer, number: int, knowledge: Knowledge) -> None:
        self._number, self._all_members = number, player.all_members
        self._began = time.perf_counter()
        with _one_thread():
            self._planner = player.plan(number, knowledge)
        self._steps = TimedSteps()
        self._episodes: list[Episode] = []

    def go_on(self) -> PlayedBlock | None:
        """Plays for about half a second; returns the block once it is played."""
        with _one_thread():
            self._episodes += self._steps.step(self._planner)
        if self._planner.active.any():
            return None
        return PlayedBlock(
            self._number,
            fold(sorted(self._episodes, key=lambda episode: episode.index), all_members=self._all_members),
            self._planner.work,
            time.perf_counter() - self._began,
            f"{platform.node()}:{os.getpid()}",
        )


@contextmanager
def _one_thread() -> Iterator[None]:
    """Leaves PyTorch in this process one thread, for a while."""
    torch = sys.modules.get("torch")
    if torch is None or (all_threads := torch.get_num_threads()) == 1:
        yield
        return
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(all_threads)


class PlayersHere:
    """Plays blocks in this process, one after the other, when they are asked for."""

    num_workers = 1
    num_restarts = 0

    def __init__(self, player: BlockPlayer) -> None:
        self._player = player
        self._waiting: dict[int, Knowledge] = {}
        self._block: BlockInPlay | None = None

    def submit(self, number: int, version: int, knowledge: Knowledge) -> None:
        """Takes the order."""
        self._waiting[number] = knowledge

    def take(self, number: int, seconds: float) -> PlayedBlock | None:
        """Plays the block, the next of those ordered, for about `seconds`."""
        if self._block is None:
            self._block = BlockInPlay(self._player, number, self._waiting.pop(number))
        deadline = time.perf_counter() + seconds
        while (played := self._block.go_on()) is None and time.perf_counter() < deadline:
            pass
        if played is not None:
            self._block = None
        return played

    def look_after(self) -> None:
        """Does nothing: while this process learns, it does not play."""

    def close(self) -> None:
        """Forgets all orders."""
        self._waiting.clear()
        self._block = None
