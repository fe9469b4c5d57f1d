"""How many moves are made in one go when nobody wants to see each of them."""

from __future__ import annotations

import time
from typing import Protocol

from bathysphere.planning.episode import Episode

_AT_MOST = 4.0  # times the moves of last time: a moment in which the machine was fast is not to be trusted too far


class _Player(Protocol):
    def step(self, moves: int = 1) -> list[Episode]: ...


class Pace:
    """Makes moves in calls that take about `seconds` each.

    Few long calls save time, but while one lasts nobody answers Ctrl-C. Which episodes are played does not depend on
    it.
    """

    def __init__(self, seconds: float = 0.5) -> None:
        self.seconds = seconds
        self.moves = 1  # of the next call

    def step(self, player: _Player) -> list[Episode]:
        """Has a search or a crew make `moves` moves; returns the episodes that finished."""
        began = time.perf_counter()
        episodes = player.step(self.moves)
        faster = self.seconds / (time.perf_counter() - began)
        self.moves = max(1, int(self.moves * min(faster, _AT_MOST)))
        return episodes
