"""Where a run has been: visited rooms and cells, in worlds that have rooms (Toy Montezuma)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bathysphere.domains import ToyMontezuma
from bathysphere.domains.base import Domain, States
from bathysphere.domains.toy_montezuma import rules
from bathysphere.domains.toy_montezuma.maps import DOOR, FLOOR, KEY
from bathysphere.planning import Episode
from bathysphere.values.ensemble import Ensemble


class Visits:
    """Counts the visits to every cell and room; does nothing in a world without rooms.

    Attributes:
      cells: int64 [height, width], visits to each cell of the whole map.
      states: uint8 [height, width, S], the state each cell was last seen in; untouched doors and keys before.
    """

    def __init__(self, domain: Domain) -> None:
        self._domain = domain if isinstance(domain, ToyMontezuma) else None
        if self._domain is None:
            return
        self.cells = np.zeros(self._domain.world.tiles.shape, np.int64)
        self.states = _untouched(self._domain)
        self._rooms = np.zeros(len(self._domain.rooms), np.bool_)
        self._total, self._games = 0, 0  # rooms of all games, summed, and how many games
        self._row = (0, 0)  # the same at the last row of the metrics

    @property
    def num_rooms(self) -> int:
        """Distinct rooms visited so far."""
        return int(self._rooms.sum())

    def record(self, episodes: list[Episode]) -> None:
        """Takes note of finished games."""
        if self._domain is None:
            return
        for episode in episodes:
            # The state reached last is not stored, and may be the only one in the goal room.
            last = self._domain.successors(episode.states[-1:]).states[0, episode.actions[-1:]]
            states = np.concatenate([episode.states, last])
            x, y = self._domain.positions(states)
            np.add.at(self.cells, (y, x), 1)
            self.states[y, x] = states
            rooms = np.unique(self._domain.room_index(states))
            self._rooms[rooms] = True
            self._total += len(rooms)
            self._games += 1

    def columns(self) -> dict[str, Any]:
        """Returns columns for a row of the metrics: rooms per game since the last row, and over the run."""
        if self._domain is None:
            return {}
        total, games = self._total - self._row[0], self._games - self._row[1]
        self._row = (self._total, self._games)
        return {"rooms_per_episode": total / games if games else None, "rooms_visited": self.num_rooms}

    def totals(self) -> dict[str, Any]:
        """Returns entries for the result: rooms per game and distinct rooms, over the whole run."""
        if self._domain is None:
            return {}
        mean = self._total / self._games if self._games else None
        return {"rooms_per_episode": mean, "rooms_visited": self.num_rooms}

    def std_map(self, values: Ensemble) -> NDArray[np.float64]:
        """Returns the members' standard deviation at every cell's state, [height, width]; nan elsewhere."""
        assert self._domain is not None
        std = np.full(self.cells.shape, np.nan)
        is_floor = np.isin(self._domain.world.tiles, (FLOOR, KEY, DOOR))
        std[is_floor] = values.evaluate(self._domain.observe(self.states[is_floor])).std(axis=1)
        return std

    def state_dict(self) -> dict[str, NDArray[Any]]:
        """Returns everything as arrays."""
        if self._domain is None:
            return {}
        counts = np.array([self._total, self._games, *self._row])
        return {
            "cells": self.cells.copy(),
            "states": self.states.copy(),
            "rooms": self._rooms.copy(),
            "counts": counts,
        }

    def load_state_dict(self, state: Mapping[str, NDArray[Any]]) -> None:
        """Restores what `state_dict` returned."""
        if self._domain is None:
            return
        self.cells[:], self.states[:], self._rooms[:] = state["cells"], state["states"], state["rooms"]
        self._total, self._games, *row = state["counts"].tolist()
        self._row = (row[0], row[1])


def _untouched(domain: ToyMontezuma) -> States:
    """Returns the start state moved to every cell of the map, uint8 [height, width, S]."""
    height, width = domain.world.tiles.shape
    room_width, room_height = domain.world.room_size
    first_x, first_y = domain.world.first_room
    y, x = np.indices((height, width))
    states = np.tile(domain.initial(1, np.random.default_rng(0)), (height, width, 1))
    states[..., rules.ROOM_X], states[..., rules.CELL_X] = first_x + x // room_width, x % room_width
    states[..., rules.ROOM_Y], states[..., rules.CELL_Y] = first_y + y // room_height, y % room_height
    return states
