"""The figure of studies whose runs keep learning curves: how often they win, and how much they explore."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import cycle
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from bathysphere.studies.figures import INK, tidy
from bathysphere.studies.statistics import mean_band
from bathysphere.studies.study import Record, Study

if TYPE_CHECKING:
    from matplotlib.figure import Figure

COLUMNS = ("env_steps", "episodes", "win_rate_1000", "graph_size")  # of the metrics, for `Study.curve`
_COLOURS = ("#1f6fbf", "#e8820c", "#2f9e6e", "#b0418f", "#6b4fbb")
_PANELS = (
    ("win_rate_1000", "win rate, last 1000 games", lambda share, _: f"{share:.0%}"),
    ("graph_size", "states explored in a game", lambda states, _: f"{states:,.0f}"),
)


def learning_curves(study: Study, records: list[Record]) -> Figure:
    """Draws win rate and explored states against steps: the mean of each setting's runs with its 95% interval.

    Dashed lines are the paper's final win rates, in the colour of their settings.
    """
    from matplotlib.figure import Figure

    figure = Figure(figsize=(7.6, 6.2), layout="constrained", facecolor="white")
    axes = figure.subplots(2, 1, sharex=True, height_ratios=(3, 2))
    coloured = list(zip(study.settings, cycle(_COLOURS), strict=False))
    for axis, (column, label, text) in zip(axes, _PANELS, strict=True):
        for setting, colour in coloured:
            mine = [r for r in records if r["setting"] == setting.name and r["state"] == "finished"]
            _draw_mean(axis, mine, column, colour)
        axis.set_ylabel(label, color=INK)
        axis.yaxis.set_major_formatter(text)
        axis.set_ylim(bottom=0)
        tidy(axis)
    wins, graph = axes
    for setting, colour in coloured:
        if paper := study.paper.get((setting.name, "win-rate")):
            height = paper.value / 100
            wins.axhline(height, color=colour, linewidth=1.1, linestyle=(0, (5, 4)))
            place = {"xycoords": ("axes fraction", "data"), "va": "bottom"}
            wins.annotate(f"paper: {paper.text}", (0.01, height), fontsize=8, color=colour, **place)
    wins.set_ylim(top=1)
    handles = [wins.plot([], [], color=colour, label=setting.title)[0] for setting, colour in coloured]
    wins.legend(handles=handles, frameon=False, fontsize=8, labelcolor=INK)
    graph.set_xlabel("environment steps (means of runs, with their 95% interval)", color=INK)
    graph.xaxis.set_major_formatter(lambda steps, _: f"{steps / 1e6:g}M" if steps >= 1e5 else f"{steps:,.0f}")
    return figure


def _draw_mean(axis: Any, records: Sequence[Record], column: str, colour: str) -> None:
    curves = [curve for record in records if len((curve := points(record, column))[0])]
    if not curves:
        return
    # Runs have rows at nearly the same moments; where a row is empty, what lies between its neighbours stands in.
    last = min(steps[-1] for steps, _ in curves)
    moments = np.unique(np.concatenate([steps[steps <= last] for steps, _ in curves]))
    mean, low, high = mean_band(np.stack([np.interp(moments, steps, values) for steps, values in curves]))
    axis.plot(moments, mean, color=colour, linewidth=1.6)
    axis.fill_between(moments, low, high, color=colour, alpha=0.2, linewidth=0)


def points(record: Record, column: str) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Returns the steps at which a run's curve has a number, and the numbers, float64 [T] each."""
    curve = record.get("curve") or {"env_steps": [], column: []}
    pairs = [(s, v) for s, v in zip(curve["env_steps"], curve[column], strict=True) if v is not None]
    steps, values = np.array(pairs, np.float64).reshape(-1, 2).T
    return steps, values
