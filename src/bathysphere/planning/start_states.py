"""Where episodes begin: the n-th of a list, of a domain's numbered stream, or what the domain draws."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from bathysphere.domains.base import Domain, NumberedStarts, Starts, States
from bathysphere.errors import BathysphereError
from bathysphere.storage.state import MOST, require


@dataclass(frozen=True)
class ListedStarts:
    """A list of start states as a stream: after the last one comes the first."""

    states: States  # uint8 [n, S]

    def take(self, numbers: NDArray[np.int64], ahead: NDArray[np.int64]) -> States:
        """Returns the start states with these numbers, uint8 [n, S]; there is nothing to prepare."""
        return self.states[numbers % len(self.states)]


def find_starts(given: States | Starts | None, domain: Domain, seed: np.random.SeedSequence) -> Starts | None:
    """Returns the stream that episodes begin with; None if the domain is to draw their states with `initial`.

    Args:
      given: a list or a stream; comes before the domain's own.
      domain: its own stream serves otherwise, if it has one.
      seed: alone decides the number of that stream.
    """
    if isinstance(given, np.ndarray):
        return ListedStarts(_checked(given, domain.state_size))
    if given is None and isinstance(domain, NumberedStarts):
        return domain.numbered_starts(int(seed.generate_state(1, np.uint64)[0]) >> 1)
    return given


class Beginning(NamedTuple):
    """The next k episodes of a planner."""

    indices: NDArray[np.int64]  # [k], in order of starting, among this planner's own
    states: States  # uint8 [k, S]
    seeds: NDArray[np.uint64]  # [k], of each episode's random stream


class EpisodeStarts:
    """Begins the episodes of one planner, in order, as many as are allowed.

    Args:
      domain: draws start states if there is no stream of them.
      starts: the stream, or None.
      rng: draws seeds, and start states without a stream.
      num_episodes: how many to begin; None for no end.
      worker, workers: the planner is number `worker` of `workers`: its k-th episode is number k * workers + worker of
        theirs together, and begins with the start state of that number.
    """

    def __init__(
        self,
        domain: Domain,
        starts: Starts | None,
        rng: np.random.Generator,
        num_episodes: int | None,
        worker: int,
        workers: int,
    ) -> None:
        self.num_started = 0
        self._domain, self._starts, self._rng = domain, starts, rng
        self._num_episodes, self._worker, self._workers = num_episodes, worker, workers

    def number(self, indices: NDArray[np.int64]) -> NDArray[np.int64]:
        """Returns the numbers that episodes of this planner have among those of all workers."""
        return indices * self._workers + self._worker

    def state_dict(self, active: NDArray[np.bool_], indices: NDArray[np.int64]) -> dict[str, NDArray[Any]]:
        """Returns how many episodes were begun, which slots [B] hold one, and its index there [B]."""
        return {"active": active.copy(), "episode": indices.copy(), "num_started": np.array(self.num_started)}

    def load_state_dict(
        self, state: Mapping[str, NDArray[Any]], active: NDArray[np.bool_], indices: NDArray[np.int64]
    ) -> None:
        """Restores what `state_dict` returned; there may be other arrays too. Mutates: active, indices."""
        saved, started = state["episode"], int(state["num_started"])
        require(saved.shape == state["active"].shape == indices.shape, "it has another number of slots")
        require(
            0 <= started < MOST and ((saved >= 0) & (saved < max(started, 1))).all(),
            "an episode goes on before it began",
        )
        is_going_on = self._num_episodes is not None or state["active"].all()
        require(is_going_on, "a slot is idle although there is no end of episodes")
        active[:], indices[:], self.num_started = state["active"], saved, started

    def begin(self, count: int, ahead: int) -> Beginning | None:
        """Begins up to `count` episodes, as many as are still allowed; None if none is.

        Args:
          count: places for them.
          ahead: how many start states after them will be wanted next; they may be prepared meanwhile.
        """
        if self._num_episodes is not None:
            count = min(count, self._num_episodes - self.num_started)
        if count == 0:
            return None
        indices = np.arange(self.num_started, self.num_started + count)
        if self._starts is None:
            states = self._domain.initial(count, self._rng)
        else:
            after = indices[-1] + 1 + np.arange(ahead)
            if self._num_episodes is not None:
                after = after[after < self._num_episodes]
            states = self._starts.take(self.number(indices), self.number(after))
            states = _checked(states, self._domain.state_size)
        self.num_started += count
        return Beginning(indices, states, self._rng.integers(2**64, size=count, dtype=np.uint64))


def _checked(starts: States, state_size: int) -> States:
    """Returns start states as they came, or refuses them."""
    if starts.ndim != 2 or len(starts) == 0 or starts.shape[1] != state_size or starts.dtype != np.uint8:
        raise BathysphereError(
            f"starts are {starts.dtype} of shape {starts.shape}; expected uint8 [n, {state_size}], n at least 1, "
            "such as the domain's initial or successors return."
        )
    return starts
