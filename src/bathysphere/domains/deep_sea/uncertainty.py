"""What the ensemble does not know, cell by cell of Deep-sea, from the start of training to its end."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from bathysphere.domains.base import States
from bathysphere.domains.observing import FinishedEpisode, TrainingMap
from bathysphere.plots import GOLD, INK, ROCK
from bathysphere.storage.state import require

if TYPE_CHECKING:
    from matplotlib.figure import Figure

MAX_SIDE = 200  # larger seas would make checkpoints large
_GROWTH = 1.25  # a map whenever the number of steps has grown by this factor
_PANELS = 5


class UncertaintyMaps:
    """Maps of the ensemble's standard deviation, at moments that lie closer the earlier they are.

    Args:
      side: of the sea, in cells; none larger than `MAX_SIDE` is mapped.
      evaluate: returns the members' values of states, float32 [n, E].

    Attributes:
      steps: the moments, in environment steps.
      maps: float32 [side, side] each, as `std_map` makes them.
    """

    name = "snapshots"

    def __init__(self, side: int, evaluate: Callable[[States], NDArray[np.float32]]) -> None:
        self.steps: list[int] = []
        self.maps: list[NDArray[np.float32]] = []
        self._side, self._evaluate = side, evaluate
        self._next = 0

    def record(self, episodes: Sequence[FinishedEpisode], env_steps: int) -> None:
        """Makes a map if one is due."""
        if env_steps >= self._next and self._side <= MAX_SIDE:
            self._take(env_steps)

    def _take(self, env_steps: int) -> None:
        self.steps.append(env_steps)
        self.maps.append(std_map(self._side, self._evaluate))
        self._next = max(int(env_steps * _GROWTH), env_steps + 4 * self._side)

    def columns(self) -> dict[str, Any]:
        """Returns nothing: maps have no place in a row."""
        return {}

    def totals(self) -> dict[str, Any]:
        """Returns nothing."""
        return {}

    def pictures(self, env_steps: int, solved_step: int | None) -> dict[str, Figure]:
        """Draws the maps before, during and after training, after making one of this moment if there is none."""
        if self._side > MAX_SIDE:
            return {}
        if self.steps[-1:] != [env_steps]:
            self._take(env_steps)
        return {"uncertainty.png": uncertainty_figure(self.steps, self.maps, solved_step)}

    def training_maps(self) -> list[TrainingMap]:
        """Returns the maps so far, oldest first."""
        told = zip(self.steps, self.maps, strict=True)
        return [TrainingMap("standard deviation", step, std.astype(np.float64)) for step, std in told]

    def state_dict(self) -> dict[str, NDArray[Any]]:
        """Returns everything as arrays."""
        return {
            "steps": np.array(self.steps, np.int64),
            "maps": np.array(self.maps, np.float32).reshape(len(self.maps), self._side, self._side),
            "next": np.array(self._next, np.int64),
        }

    def load_state_dict(self, state: Mapping[str, NDArray[Any]]) -> None:
        """Restores what `state_dict` returned."""
        steps, maps = state["steps"], state["maps"]
        is_ordered = (np.diff(steps) > 0).all() and (steps >= 0).all()
        require(maps.shape == (len(steps), self._side, self._side) and is_ordered, "maps and their moments disagree")
        self.steps, self.maps, self._next = state["steps"].tolist(), list(state["maps"]), int(state["next"])


def std_map(side: int, evaluate: Callable[[States], NDArray[np.float32]]) -> NDArray[np.float32]:
    """Returns the members' standard deviation in every cell, float32 [side, side].

    It is nan where no value is ever asked for: out of reach, and on the sea bed, where dives end.
    """
    rows, columns = np.indices((side, side), dtype=np.uint16)
    states = np.ascontiguousarray(np.stack([rows.ravel(), columns.ravel()], axis=1)).astype("<u2").view(np.uint8)
    std: NDArray[np.float32] = evaluate(states).std(axis=1).reshape(side, side)
    std[(columns > rows) | (rows == side - 1)] = np.nan
    return std


def uncertainty_figure(steps: list[int], maps: list[NDArray[np.float32]], solved_step: int | None) -> Figure:
    """Draws the members' standard deviation in every cell before, during and after training, in one scale.

    Blue is what the ensemble does not know, white what it knows; grey has no value: no dive reaches the upper
    right, and on the sea bed dives are over.
    """
    from matplotlib.colors import LinearSegmentedColormap
    from matplotlib.figure import Figure

    chosen = choose_panels(steps, solved_step)
    shades = ["#ffffff", "#cfe3f5", "#74b0e0", "#1f6fbf", "#08306b"]
    colours = LinearSegmentedColormap.from_list("sea", shades).with_extremes(bad=ROCK)
    top = float(np.nanmax(maps[0]))
    figure = Figure(figsize=(2.35 * len(chosen) + 0.9, 3.15), layout="constrained", facecolor="white")
    axes = figure.subplots(1, len(chosen), squeeze=False)[0]
    for panel, (axis, index) in enumerate(zip(axes, chosen, strict=True)):
        image = axis.imshow(maps[index], cmap=colours, vmin=0.0, vmax=top, interpolation="nearest")
        side = len(maps[index])
        axis.plot(side - 1, side - 1, marker="*", markersize=10, color=GOLD, markeredgecolor="white", clip_on=False)
        axis.set_xticks([])
        axis.set_yticks([])
        for spine in axis.spines.values():
            spine.set_color("#b8b2a8")
        moment = "before" if panel == 0 else "after" if panel == len(chosen) - 1 else "during"
        axis.set_title(moment, color=INK, fontsize=10, fontweight="bold", pad=5)
        axis.set_xlabel(f"step {steps[index]:,}", color=INK, fontsize=9)
    bar = figure.colorbar(image, ax=axes, shrink=0.8, aspect=16, pad=0.015, extend="max")
    bar.set_label("ensemble standard deviation", color=INK, fontsize=8)
    bar.ax.tick_params(labelsize=7, colors=INK)
    bar.outline.set_visible(False)
    return figure


def choose_panels(steps: list[int], solved_step: int | None) -> list[int]:
    """Returns up to five moments: the first, three evenly spread until the run was solved, and the last."""
    last = len(steps) - 1
    end = steps[last] if solved_step is None else min(solved_step, steps[last])
    wanted = np.linspace(0, end, _PANELS)[1:-1]
    during = [int(np.argmin(np.abs(np.array(steps) - moment))) for moment in wanted]
    return sorted({0, *during, last})
