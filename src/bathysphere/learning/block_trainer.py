"""Training in blocks: others play, the learner takes what they have played, block after block."""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bathysphere.domains.base import AskedModel, Domain, LearningModel, Model, Remembers
from bathysphere.errors import BathysphereError
from bathysphere.learning.blocks import BlockPlayer, Knowledge, PlayedBlock, Players, PlayersHere, check_playable
from bathysphere.learning.config import LearningConfig
from bathysphere.learning.learner import Learner
from bathysphere.learning.targets import num_targets
from bathysphere.planning import Episode, PlannerSettings
from bathysphere.planning.planner import Work
from bathysphere.storage.state import Arrays, prefixed, require, section
from bathysphere.values.ensemble import Ensemble

_LOOK_SECONDS = 0.2  # that `advance` waits for a block


class BlockTrainer(Learner):
    """Learns from blocks in order. Block b is played with the weights left by block b - distance.

    So while the learner learns from one block, `distance` - 1 others can be played, and the run does not depend on who
    plays them.

    Args:
      domain: the world.
      values: the ensemble to train.
      search: how episodes are planned.
      learning: how episodes become updates.
      batch: episodes that a player plays at once.
      block: episodes of a block.
      distance: how many blocks behind the weights may be, at least 1.
      seed: decides start states, ties, members drawn, masks and batches (not the ensemble's initial weights).
      model: as for `MCTS`.
      players: who plays, given what plays blocks; does not decide anything else.
    """

    def __init__(
        self,
        domain: Domain,
        values: Ensemble,
        search: PlannerSettings,
        learning: LearningConfig,
        *,
        batch: int,
        block: int,
        distance: int,
        seed: int | np.random.SeedSequence = 0,
        model: Model | None = None,
        players: Callable[[BlockPlayer], Players] = PlayersHere,
    ) -> None:
        sequence = seed if isinstance(seed, np.random.SeedSequence) else np.random.SeedSequence(seed)
        play_seed, learn_seed = sequence.spawn(2)
        super().__init__(domain, values, search, learning, learn_seed, model)
        check_playable(domain)
        if isinstance(self.model, Remembers) and learning.target == "lookahead":
            raise BathysphereError(
                f"With learning.target lookahead, the learner asks {domain.name} for steps from states that only its "
                "workers have met. Choose another target, or leave out scale.block and the workers."
            )
        if isinstance(model, AskedModel):
            raise BathysphereError(
                "The models relevance, network and ensemble learn from every step when it is made, so they cannot be "
                "used in blocks, which are planned with what was known before. Leave out scale.block and the workers, "
                "or use the model memory, which learns from whole episodes."
            )
        self._distance = distance
        self._work = Work()
        self._next = 0  # the block to learn from next
        self._num_submitted = 0  # blocks ordered so far
        # What blocks to come are played with, by version: the number of blocks that were learnt from. Empty until the
        # first `advance`, so that weights may still be loaded.
        self._versions: dict[int, _Version] = {}
        self._staleness = 0  # updates made since the weights of the latest block
        self._rates = _Rates()
        self.players = players(
            BlockPlayer(
                domain,
                values.snapshot(),
                self._play_settings,
                batch=batch,
                size=block,
                seed=play_seed,
                model=model,
                graph_states=self._graph_states,
                all_members=num_targets(learning.target, values.num_members) > 1,
            )
        )

    @property
    def work(self) -> Work:
        """What planning has cost so far, wherever it was done."""
        return self._work

    def advance(self) -> list[Episode] | None:
        """Learns from the next block if it is played; returns its episodes. None if it is still being played."""
        if not self._versions:
            self._keep_version()
        while self._num_submitted < self._next + self._distance:
            number = self._num_submitted
            version = self._version_of(number)
            self.players.submit(number, version, self._versions[version].knowledge)
            self._num_submitted += 1
        began = time.perf_counter()
        played = self.players.take(self._next, _LOOK_SECONDS)
        self._rates.waited += time.perf_counter() - began
        if played is None:
            return None
        return self._learn_from(played)

    def columns(self) -> dict[str, Any]:
        """Returns what is known about blocks and those who play them; rates and waiting since the last call."""
        rates, self._rates = self._rates, _Rates()
        return {
            "blocks": self._next,
            "staleness": self._staleness,
            "blocks_in_flight": self._num_submitted - self._next,
            "workers": self.players.num_workers,
            "worker_restarts": self.players.num_restarts,
            "worker_steps_per_second": rates.by_worker(),
            "learner_waited": rates.waited,
        }

    def close(self) -> None:
        """Ends whatever blocks are played in."""
        self.players.close()

    def _version_of(self, block: int) -> int:
        """Returns the version of the weights that a block is played with."""
        return max(block - self._distance + 1, 0)

    def _learn_from(self, played: PlayedBlock) -> list[Episode]:
        updates_then = self._versions[self._version_of(self._next)].updates
        self._staleness = self.progress.updates - updates_then
        self._rates.add(played)
        self._work += played.work
        self._imagine(played.work.model_calls)
        episodes = played.episodes()
        for episode in episodes:
            self.progress.env_steps += len(episode)
            self._take([episode])
            self.players.look_after()
        self._next += 1
        self._keep_version()
        return episodes

    def _keep_version(self) -> None:
        """Keeps what is known now, and forgets what no block needs any more."""
        model = self.model.state_dict() if isinstance(self.model, LearningModel) else None
        self._versions[self._next] = _Version(Knowledge(self.values.weights(), model), self.progress.updates)
        first = self._version_of(self._next)
        self._versions = {number: version for number, version in self._versions.items() if number >= first}

    def state_dict(self) -> dict[str, NDArray[Any]]:
        """Returns everything a resumed trainer needs to go on bit for bit; blocks in flight are played again."""
        state: Arrays = {
            "next": np.array(self._next),
            "staleness": np.array(self._staleness),
            **self._work.state_dict(),
        }
        for number, version in self._versions.items():
            state[f"version{number}.updates"] = np.array(version.updates)
            state |= prefixed(f"version{number}.weights.", version.knowledge.weights)
            state |= prefixed(f"version{number}.model.", version.knowledge.model or {})
        return {**super().state_dict(), **prefixed("blocks.", state)}

    def load_state_dict(self, state: Mapping[str, NDArray[Any]]) -> None:
        """Restores what `state_dict` returned, before the first `advance`."""
        super().load_state_dict(state)
        own = section(state, "blocks.")
        self._next = self._num_submitted = int(own["next"])
        require(0 <= self._next <= self.progress.episodes, "it has learnt from more blocks than episodes")
        self._staleness = int(own["staleness"])
        self._work.load_state_dict(own)
        self._versions = {}
        for number in range(self._version_of(self._next), self._next + 1):
            if saved := section(own, f"version{number}."):
                knowledge = Knowledge(section(saved, "weights."), section(saved, "model.") or None)
                self._versions[number] = _Version(knowledge, int(saved["updates"]))
                is_learnt = isinstance(self.model, LearningModel)
                require((knowledge.model is not None) == is_learnt, "a block would be played with another model")
        require(self._next in self._versions or not self._next, "what blocks are to be played with is not there")


class _Version:
    """What was known at one moment."""

    def __init__(self, knowledge: Knowledge, updates: int) -> None:
        self.knowledge = knowledge
        self.updates = updates  # that had been made by then


class _Rates:
    """What happened since the last row of the metrics."""

    def __init__(self) -> None:
        self.waited = 0.0  # seconds in which the learner waited for a block
        self._steps: defaultdict[str, int] = defaultdict(int)
        self._seconds: defaultdict[str, float] = defaultdict(float)

    def add(self, played: PlayedBlock) -> None:
        self._steps[played.worker] += played.work.steps
        self._seconds[played.worker] += played.seconds

    def by_worker(self) -> dict[str, float]:
        """Returns steps per second of each worker's own time."""
        return {name: steps / max(self._seconds[name], 1e-9) for name, steps in sorted(self._steps.items())}
