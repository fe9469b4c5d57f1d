"""The figure of studies whose runs keep learning curves: how often they win, and how much they explore."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import cycle
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from bathysphere.plots import BLUE, INK, ORANGE, tidy
from bathysphere.studies.statistics import mean_band
from bathysphere.studies.study import Record, Study

if TYPE_CHECKING:
    from matplotlib.figure import Figure

COLUMNS = ("env_steps", "episodes", "win_rate_1000", "graph_size")  # of the metrics, for `Study.curve`
Curve = tuple[NDArray[np.float64], NDArray[np.float64]]  # [T] each: where, and how much
_COLOURS = (BLUE, ORANGE, "#2f9e6e", "#b0418f", "#6b4fbb")
_MIN_EPISODES = 100  # before them a mean says little: after one episode, won, the win rate is 100%
_RECENT_EPISODES = 300  # over which explored states are averaged: those of single episodes differ by factors


def learning_curves(study: Study, records: list[Record]) -> Figure:
    """Draws win rate and explored states against steps: the mean of each setting's runs with its 95% interval.

    Dashed lines are the paper's final win rates, in the colour of their settings.
    """
    from matplotlib.figure import Figure

    figure = Figure(figsize=(7.6, 6.2), layout="constrained", facecolor="white")
    axes = figure.subplots(2, 1, sharex=True, height_ratios=(3, 2))
    coloured = list(zip(study.settings, cycle(_COLOURS), strict=False))
    panels = (
        (win_rates, "win rate, last 1000 episodes", lambda share, _: f"{share:.0%}"),
        (
            explored,
            f"states explored in an episode,\nlast {_RECENT_EPISODES} episodes",
            lambda states, _: f"{states:,.0f}",
        ),
    )
    finished = {
        setting.name: [r for r in records if r["setting"] == setting.name and r["state"] == "finished"]
        for setting in study.settings
    }
    for axis, (curve, label, text) in zip(axes, panels, strict=True):
        for setting, colour in coloured:
            draw_mean(axis, [curve(record) for record in finished[setting.name]], colour)
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
    shown = [(setting.title, colour) for setting, colour in coloured if finished[setting.name]]
    handles = [wins.plot([], [], color=colour, label=title)[0] for title, colour in shown]
    wins.legend(handles=handles, frameon=False, fontsize=8, labelcolor=INK)
    runs = "one run" if max(map(len, finished.values())) <= 1 else "means of runs, with their 95% interval"
    graph.set_xlabel(f"environment steps ({runs})", color=INK)
    graph.xaxis.set_major_formatter(lambda steps, _: f"{steps:,.0f}")
    return figure


def draw_mean(axis: Any, curves: Sequence[Curve], colour: Any) -> None:
    """Draws the mean of curves with its 95% interval, as far as all of them go."""
    curves = [curve for curve in curves if len(curve[0])]
    if not curves:
        return
    # Runs have rows at nearly the same moments; where a row is empty, what lies between its neighbours stands in.
    last = min(steps[-1] for steps, _ in curves)
    moments = np.unique(np.concatenate([steps[steps <= last] for steps, _ in curves]))
    mean, low, high = mean_band(np.stack([np.interp(moments, steps, values) for steps, values in curves]))
    axis.plot(moments, mean, color=colour, linewidth=1.6)
    axis.fill_between(moments, low, high, color=colour, alpha=0.2, linewidth=0)


def win_rates(record: Record, column: str = "env_steps") -> Curve:
    """Returns a run's win rates over about its last 1000 episodes, and what another column was then, that first.

    They begin when there have been episodes enough to speak of a rate.
    """
    rows = curve_rows(record, column, "episodes", "win_rate_1000")
    rows = rows[rows[:, 1] >= _MIN_EPISODES]
    return rows[:, 0], rows[:, 2]


def explored(record: Record) -> Curve:
    """Returns steps, and the mean of states explored in about the last 300 episodes, once there have been enough."""
    rows = curve_rows(record, "env_steps", "episodes", "graph_size")
    means, episodes, total, weight = [], 0.0, 0.0, 0.0
    for _, now, size in rows:
        kept = math.exp((episodes - now) / _RECENT_EPISODES)
        episodes, total, weight = now, total * kept + (1 - kept) * size, weight * kept + (1 - kept)
        means.append(total / weight)
    settled = rows[:, 1] >= _MIN_EPISODES
    return rows[settled, 0], np.array(means)[settled]


def curve_rows(record: Record, *columns: str) -> NDArray[np.float64]:
    """Returns some columns of a run's curve, float64 [T, columns], without rows in which one is empty."""
    curve = record.get("curve") or {column: [] for column in columns}
    rows = zip(*(curve[column] for column in columns), strict=True)
    return np.array([row for row in rows if None not in row], np.float64).reshape(-1, len(columns))
