"""Where a run has been in Toy Montezuma: visited rooms and cells."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from bathysphere.domains.base import States
from bathysphere.domains.observing import FinishedEpisode, TrainingMap
from bathysphere.domains.toy_montezuma import rules
from bathysphere.domains.toy_montezuma.maps import DOOR, FLOOR, KEY
from bathysphere.plots import INK
from bathysphere.storage.state import require

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from bathysphere.domains.toy_montezuma.domain import ToyMontezuma


class Visits:
    """Counts the visits to every cell and room.

    Args:
      domain: the world.
      evaluate: returns the members' values of states, float32 [n, E].

    Attributes:
      cells: int64 [height, width], visits to each cell of the whole map.
      states: uint8 [height, width, S], the state each cell was last seen in; untouched doors and keys before.
    """

    name = "visits"

    def __init__(self, domain: ToyMontezuma, evaluate: Callable[[States], NDArray[np.float32]]) -> None:
        self._domain, self._evaluate = domain, evaluate
        self.cells = np.zeros(domain.world.tiles.shape, np.int64)
        self.states = moved_everywhere(domain, domain.initial(1, np.random.default_rng(0))[0])
        self._rooms = np.zeros(len(domain.rooms), np.bool_)
        self._total, self._episodes = 0, 0  # rooms of all episodes, summed, and how many episodes
        self._row = (0, 0)  # the same at the last row of the metrics

    @property
    def num_rooms(self) -> int:
        """Distinct rooms visited so far."""
        return int(self._rooms.sum())

    def record(self, episodes: Sequence[FinishedEpisode], env_steps: int) -> None:
        """Counts the cells and rooms of finished episodes."""
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
            self._episodes += 1

    def columns(self) -> dict[str, Any]:
        """Returns rooms per episode since the last row, and distinct rooms over the run."""
        total, episodes = self._total - self._row[0], self._episodes - self._row[1]
        self._row = (self._total, self._episodes)
        return {"rooms_per_episode": total / episodes if episodes else None, "rooms_visited": self.num_rooms}

    def totals(self) -> dict[str, Any]:
        """Returns rooms per episode and distinct rooms, over the whole run."""
        mean = self._total / self._episodes if self._episodes else None
        return {"rooms_per_episode": mean, "rooms_visited": self.num_rooms}

    def pictures(self, env_steps: int, solved_step: int | None) -> dict[str, Figure]:
        """Draws the map twice: coloured by the number of visits, and by the members' standard deviation.

        Each is scaled to its largest value, visits by their logarithm. Cells without visits keep their tiles on
        the left; on the right they are judged as if reached with every key and door untouched.
        """
        from matplotlib.figure import Figure

        counts = np.where(self.cells > 0, np.log1p(self.cells), np.nan)
        panels = (
            (f"{self.num_rooms} of {len(self._domain.rooms)} rooms visited", counts),
            ("ensemble standard deviation", self.std_map()),
        )
        figure = Figure(figsize=(11.0, 3.2), layout="constrained", facecolor="white")
        for axis, (title, heat) in zip(figure.subplots(1, 2), panels, strict=True):
            top = np.nanmax(heat, initial=0.0)
            axis.imshow(self._domain.render_world(heat=heat / top if top > 0 else heat))
            axis.set_title(title, color=INK, fontsize=11, fontweight="bold", loc="left")
            note = f"blue: few visits, orange: {np.expm1(top):,.0f}" if heat is counts else f"orange: {top:.3g}"
            axis.set_xlabel(note, color=INK, fontsize=9)
            axis.set_xticks([])
            axis.set_yticks([])
        return {"rooms.png": figure}

    def std_map(self) -> NDArray[np.float64]:
        """Returns the members' standard deviation at every cell's state, [height, width]; nan elsewhere."""
        std = np.full(self.cells.shape, np.nan)
        is_floor = np.isin(self._domain.world.tiles, (FLOOR, KEY, DOOR))
        std[is_floor] = self._evaluate(self.states[is_floor]).std(axis=1)
        return std

    def training_maps(self) -> list[TrainingMap]:
        """Returns the visits to every cell, and how far members differ at the states last seen there."""
        visits = np.where(self.cells > 0, np.log10(np.maximum(self.cells, 1)) + 1, np.nan)
        return [
            TrainingMap("visits (1 + their logarithm, base 10)", None, visits),
            TrainingMap("standard deviation where it was last", None, self.std_map()),
        ]

    def state_dict(self) -> dict[str, NDArray[Any]]:
        """Returns everything as arrays."""
        counts = np.array([self._total, self._episodes, *self._row])
        return {
            "cells": self.cells.copy(),
            "states": self.states.copy(),
            "rooms": self._rooms.copy(),
            "counts": counts,
        }

    def load_state_dict(self, state: Mapping[str, NDArray[Any]]) -> None:
        """Restores what `state_dict` returned."""
        own = self.state_dict()
        require(all(state[name].shape == own[name].shape for name in own), "visits are of another map")
        require(all((state[name] >= 0).all() for name in ("cells", "counts")), "a count of visits is none")
        self.cells[:], self.states[:], self._rooms[:] = state["cells"], state["states"], state["rooms"]
        self._total, self._episodes, *row = state["counts"].tolist()
        self._row = (row[0], row[1])


def moved_everywhere(domain: ToyMontezuma, state: States) -> States:
    """Returns `state`, uint8 [S], with the explorer moved to every cell of the map: uint8 [height, width, S]."""
    height, width = domain.world.tiles.shape
    room_width, room_height = domain.world.room_size
    first_x, first_y = domain.world.first_room
    y, x = np.indices((height, width))
    states = np.tile(state, (height, width, 1))
    states[..., rules.ROOM_X], states[..., rules.CELL_X] = first_x + x // room_width, x % room_width
    states[..., rules.ROOM_Y], states[..., rules.CELL_Y] = first_y + y // room_height, y % room_height
    return states
