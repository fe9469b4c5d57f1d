"""The figure of a sweep: what came out of every setting, and how its runs got there."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from bathysphere.plots import INK, plain, tidy
from bathysphere.studies.curves import Curve, curve_rows, draw_mean
from bathysphere.studies.figures import draw_estimates
from bathysphere.studies.study import Record, Study

if TYPE_CHECKING:
    from matplotlib.figure import Figure

CURVE = ("env_steps", "episodes", "wins", "return_mean_50")  # of the metrics, for `Study.curve`
_WINDOW = 50  # episodes over which a win rate is taken, if there have been as many
_FEWEST = 10  # episodes before which it says little


def sweep_figure(study: Study, records: list[Record]) -> Figure:
    """Draws all estimates, and below them returns and win rates against steps: thin lines are runs, thick ones means.

    The win rate is left out where no episode was won.
    """
    import matplotlib
    from matplotlib.figure import Figure

    finished = [record for record in records if record["state"] == "finished"]
    panels: list[tuple[str, Callable[[Record], Curve]]] = [("return, mean of the last 50 episodes", returns)]
    if any(record["wins"] for record in finished):
        panels.append((f"win rate, last {_WINDOW} episodes", recent_wins))
    height = 0.42 * len(study.settings) + 1.7
    figure = Figure(figsize=(3.0 * len(study.metrics) + 1.6, height + 3.4), layout="constrained", facecolor="white")
    parts: Any = figure.subfigures(2, 1, height_ratios=(height, 3.4))
    upper, lower = parts
    draw_estimates(upper, study, records)
    axes = lower.subplots(1, len(panels), squeeze=False)[0]
    colours = matplotlib.colormaps["viridis"](np.linspace(0.0, 0.85, len(study.settings)))
    for axis, (label, curve) in zip(axes, panels, strict=True):
        for setting, colour in zip(study.settings, colours, strict=True):
            _draw(axis, [curve(record) for record in finished if record["setting"] == setting.name], colour)
        axis.set_ylabel(label, color=INK)
        axis.set_xlabel("environment steps", color=INK)
        axis.xaxis.set_major_formatter(lambda steps, _: f"{steps:,.0f}")
        axis.locator_params(axis="x", nbins=5)
        tidy(axis)
    if len(panels) == 2:
        axes[1].set_ylim(-0.02, 1.02)
        axes[1].yaxis.set_major_formatter(lambda share, _: f"{share:.0%}")
    lines = [
        axes[0].plot([], [], color=colour, label=plain(setting.title))[0]
        for setting, colour in zip(study.settings, colours, strict=True)
    ]
    axes[0].legend(handles=lines, frameon=False, fontsize=8, labelcolor=INK)
    return figure


def recent_wins(record: Record) -> Curve:
    """Returns steps, and the share of wins in the latest 50 episodes or a few more, from the tenth episode on."""
    rows = np.concatenate([np.zeros((1, 3)), curve_rows(record, "env_steps", "episodes", "wins")])
    places, rates = [], []
    for steps, episodes, wins in rows[rows[:, 1] >= _FEWEST]:
        _, before, won = rows[rows[:, 1] <= max(episodes - _WINDOW, 0)][-1]
        places.append(steps)
        rates.append((wins - won) / (episodes - before))
    return np.array(places), np.array(rates)


def returns(record: Record) -> Curve:
    """Returns steps, and the mean return of the latest 50 episodes."""
    rows = curve_rows(record, "env_steps", "return_mean_50")
    return rows[:, 0], rows[:, 1]


def _draw(axis: Any, curves: Sequence[Curve], colour: Any) -> None:
    for steps, heights in curves:
        marker = "." if len(steps) == 1 else ""
        axis.plot(steps, heights, color=colour, linewidth=0.7, alpha=0.4, marker=marker)
    draw_mean(axis, curves, colour)
