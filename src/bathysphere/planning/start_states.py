"""Where episodes begin: the n-th of a list or of a domain's numbered stream."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from bathysphere.domains.base import Domain, NumberedStarts, Starts, States
from bathysphere.planning.checks import checked_starts


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
      given: a list or a stream that somebody asked for.
      domain: its own stream serves otherwise, if it has one.
      seed: alone decides the number of that stream.
    """
    if isinstance(given, np.ndarray):
        return ListedStarts(checked_starts(given, domain.state_size))
    if given is None and isinstance(domain, NumberedStarts):
        return domain.numbered_starts(int(seed.generate_state(1, np.uint64)[0]) >> 1)
    return given
