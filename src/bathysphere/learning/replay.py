"""Replay: recent episodes, solved and unsolved kept apart, and batches drawn from both."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from bathysphere.domains.base import Domain, States, Symmetric
from bathysphere.errors import BathysphereError
from bathysphere.learning.episode_store import EpisodeStore
from bathysphere.learning.masks import split_mask
from bathysphere.storage.state import Arrays, section
from bathysphere.values.batch import Batch


@dataclass(frozen=True)
class ReplayConfig:
    """What is kept and how it is drawn."""

    capacity: int = 100
    """Episodes kept in each class, solved and unsolved; the oldest goes first."""
    solved_share: float = 0.5
    """Share of a batch that comes from solved episodes, rounded down, while both classes have episodes."""
    sampling: Literal["episode", "length", "backward"] = "episode"
    """episode: every episode is equally likely, then every state in it (the authors' code); length: every state is
    equally likely (the paper); backward: whole episodes, the newest first, each from its end to its beginning, so that
    what targets of the newest values learn at the end is at the beginning after one walk (with renew_every 1)."""

    def __post_init__(self) -> None:
        if self.capacity < 1:
            raise BathysphereError(f"replay.capacity must be at least 1 episode, got {self.capacity}.")
        if not 0 <= self.solved_share <= 1:
            raise BathysphereError(f"replay.solved_share must be between 0 and 1, got {self.solved_share}.")


class Sample(NamedTuple):
    """`u` batches of `b` entries; in each batch the entries of solved episodes come first."""

    states: States  # uint8 [u, b, S]
    targets: NDArray[np.float32]  # float32 [u, b, M]
    mask: NDArray[np.bool_]  # bool [u, b, E]
    num_solved: int  # of each batch
    policy: NDArray[np.float32] | None = None  # float32 [u, b, A]

    def part(self, first: int, last: int) -> Sample:
        """Returns batches first..last-1."""
        policy = None if self.policy is None else self.policy[first:last]
        return Sample(self.states[first:last], self.targets[first:last], self.mask[first:last], self.num_solved, policy)

    def split(self) -> Sample:
        """Returns the same entries, each batch cut into a part for each member; see `split_mask`."""
        _, batch_size, num_members = self.mask.shape
        mask = split_mask(self.num_solved, batch_size - self.num_solved, num_members)
        return self._replace(mask=np.broadcast_to(mask, self.mask.shape))

    def transformed(self, domain: object, rng: np.random.Generator) -> Sample:
        """Returns the same entries with every state replaced by a random one of equal value."""
        if not isinstance(domain, Symmetric):
            raise BathysphereError(
                f"learning.symmetries needs a domain with a transform method, and {type(domain).__name__} has none; "
                "turn it off."
            )
        rows = self.states.reshape(-1, self.states.shape[-1])
        states, actions = domain.transform(rows, rng)
        turned = self._replace(states=states.reshape(self.states.shape))
        if self.policy is None:
            return turned
        policy = np.take_along_axis(self.policy.reshape(len(rows), -1), actions, axis=1)
        return turned._replace(policy=policy.reshape(self.policy.shape))

    def observed(self, domain: Domain) -> Batch:
        """Returns the same entries as `Ensemble.update_many` takes them."""
        num_updates, batch_size, state_size = self.states.shape
        observations = domain.observe(self.states.reshape(-1, state_size))
        shape = (num_updates, batch_size, *observations.shape[1:])
        return Batch(observations.reshape(shape), self.targets, self.mask, self.policy)


class Replay:
    """The memory of a run.

    Args:
      config: capacity and sampling.
      state_size: S.
      num_members: E.
      max_length: the most states one episode can have; memory is bounded by capacity times this.
      num_targets: M, targets per state: 1 if members share it, else E.
      num_actions: A, if policies are learnt too; else 0.
    """

    def __init__(
        self,
        config: ReplayConfig,
        state_size: int,
        num_members: int,
        max_length: int,
        num_targets: int = 1,
        num_actions: int = 0,
    ) -> None:
        self.config = config
        self._num_targets = num_targets
        width = num_targets + num_actions  # a policy is kept behind the values
        self._solved = EpisodeStore(config.capacity, max_length, state_size, num_members, width)
        self._unsolved = EpisodeStore(config.capacity, max_length, state_size, num_members, width)

    @property
    def num_solved_episodes(self) -> int:
        """Solved episodes held now."""
        return self._solved.num_episodes

    @property
    def num_unsolved_episodes(self) -> int:
        """Unsolved episodes held now."""
        return self._unsolved.num_episodes

    @property
    def num_episodes_added(self) -> int:
        """Episodes ever added."""
        return self._solved.num_added + self._unsolved.num_added

    def add(
        self,
        states: States,
        targets: NDArray[np.floating],
        mask: NDArray[np.bool_],
        solved: bool,
        policy: NDArray[np.floating] | None = None,
    ) -> None:
        """Stores an episode in its class, in place of the oldest one there if that is full.

        Args:
          states: uint8 [T, S], T at least 1.
          targets: float [T, M], stored as float32.
          mask: bool [T, E].
          solved: the class.
          policy: float [T, A], stored as float32, if policies are learnt.
        """
        if policy is not None:
            targets = np.concatenate([targets, policy], axis=1)
        (self._solved if solved else self._unsolved).add(states, targets, mask)

    def sample(self, num_batches: int, batch_size: int, rng: np.random.Generator) -> Sample:
        """Draws batches, with replacement.

        Each batch has int(batch_size * solved_share) entries from solved episodes and the rest from
        unsolved ones; if one class has no episode, all come from the other.
        """
        if self.num_episodes_added == 0:
            raise BathysphereError("replay is empty; add a finished episode before sampling.")
        num_solved = int(batch_size * self.config.solved_share)
        if self._solved.num_episodes == 0:
            num_solved = 0
        elif self._unsolved.num_episodes == 0:
            num_solved = batch_size
        store = self._solved
        states = np.empty((num_batches, batch_size, store.state_size), np.uint8)
        targets = np.empty((num_batches, batch_size, store.num_targets), np.float32)
        mask = np.empty((num_batches, batch_size, store.num_members), np.bool_)
        draws = rng.random((num_batches, batch_size, 2))
        by_length = self.config.sampling == "length"
        for store, first, last in ((self._solved, 0, num_solved), (self._unsolved, num_solved, batch_size)):
            if first < last:
                if self.config.sampling == "backward":
                    store.walk_back(draws, first, last)
                store.read(draws, by_length, first, last, states, targets, mask)
        width = self._num_targets
        policy = targets[:, :, width:] if targets.shape[2] > width else None
        return Sample(states, targets[:, :, :width], mask, num_solved, policy)

    def state_dict(self) -> Arrays:
        """Returns copies of everything held, as a flat dict of arrays, without unused memory."""
        state = {f"solved.{name}": value for name, value in self._solved.state_dict().items()}
        return state | {f"unsolved.{name}": value for name, value in self._unsolved.state_dict().items()}

    def load_state_dict(self, state: Arrays) -> None:
        """Restores what `state_dict` returned, from a replay with the same settings.

        Mutates: the replay.
        """
        for prefix, store in (("solved.", self._solved), ("unsolved.", self._unsolved)):
            store.load_state_dict(section(state, prefix))
