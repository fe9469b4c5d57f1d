"""Pictures of a run: how the win rate grew, and what observers draw."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import pairwise
from typing import TYPE_CHECKING, Any, NamedTuple

from bathysphere.learning.progress import Progress
from bathysphere.plots import DEEP, GOLD, INK, png
from bathysphere.runs.directory import RunDirectory
from bathysphere.runs.metrics import Row, read_rows
from bathysphere.statistics import wilson_interval
from bathysphere.storage.files import writing

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_MAX_INTERVALS, _MIN_EPISODES = 40, 8  # of the curve of win rates: an interval of fewer episodes says little


def draw_pictures(directory: RunDirectory, progress: Progress, observed: Mapping[str, Figure]) -> None:
    """Writes `learning.png` and what observers have drawn, by file name."""
    figures = dict(observed)
    rows = read_rows(directory.metrics_file)
    if len(rows) > 1:
        figures["learning.png"] = learning_figure(rows, progress, directory.load_config().preset)
    with writing(directory.pictures, "The run itself is saved."):
        directory.pictures.mkdir(exist_ok=True)
        for name, figure in figures.items():
            (directory.pictures / name).write_bytes(png(figure))


def learning_figure(rows: list[Row], progress: Progress, preset: str) -> Figure:
    """Draws the win rate of each interval of a run with its 95 % interval, ensemble standard deviation and loss."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(7.2, 5.2), layout="constrained", facecolor="white")
    win, std = figure.subplots(2, 1, sharex=True, height_ratios=[3, 2])
    _draw_win_rate(win, intervals(rows, progress), progress.solved_step)
    win.set_title(preset, loc="left", fontsize=11, fontweight="bold", color=INK)
    _curve(std, rows, "ensemble_std", "ensemble std", DEEP)
    loss = std.twinx()
    _curve(loss, rows, "loss", "loss", GOLD)
    std.set_xlabel("environment steps")
    std.xaxis.set_major_formatter(lambda step, _: f"{step:,.0f}")
    for axis in (win, std, loss):
        axis.tick_params(which="both", colors=INK, labelsize=8)
        axis.spines["top"].set_visible(False)
        axis.set_xlim(0, progress.env_steps)
    win.spines["right"].set_visible(False)
    return figure


class Interval(NamedTuple):
    """A part of a run."""

    begin: int  # environment steps ...
    end: int  # ... at its beginning and end
    episodes: int  # that finished in it
    wins: int


def intervals(rows: list[Row], progress: Progress) -> list[Interval]:
    """Cuts a run into up to 40 intervals of about equally many episodes, and at least 8 if there are as many.

    Rows without wins, which version 0.1 wrote, are left out.
    """
    moments = [(row["env_steps"], row["episodes"], row["wins"]) for row in rows if "wins" in row]
    first = (0, 0, 0) if moments and len(moments) == len(rows) else moments[0] if moments else None
    if first is None:
        return []
    least = max(_MIN_EPISODES, (progress.episodes - first[1]) / _MAX_INTERVALS)
    edges = [first]
    for moment in moments:
        if moment[1] - edges[-1][1] >= least:
            edges.append(moment)
    last = (progress.env_steps, progress.episodes, progress.wins)
    if last[1] - edges[-1][1] < _MIN_EPISODES and len(edges) > 1:
        edges.pop()  # too few for an interval of their own
    edges.append(last)
    return [Interval(a[0], b[0], b[1] - a[1], b[2] - a[2]) for a, b in pairwise(edges) if b[1] > a[1]]


def _draw_win_rate(axis: Any, parts: list[Interval], solved_step: int | None) -> None:
    middles = [(part.begin + part.end) / 2 for part in parts]
    bounds = [wilson_interval(part.wins, part.episodes) for part in parts]
    lows, highs = ([bound[side] for bound in bounds] for side in (0, 1))
    axis.fill_between(middles, lows, highs, color=DEEP, alpha=0.15, linewidth=0, label="95 % interval")
    rates = [part.wins / part.episodes for part in parts]
    axis.plot(middles, rates, "o-", color=DEEP, linewidth=2, markersize=4, label="episodes of each interval")
    if solved_step is not None:
        axis.axvline(solved_step, color=GOLD, linewidth=1.2, linestyle="--", label=f"solved at step {solved_step:,}")
    axis.set_ylim(-0.02, 1.02)
    axis.yaxis.set_major_formatter(lambda share, _: f"{share:.0%}")
    axis.set_ylabel("win rate", color=INK)
    axis.legend(frameon=False, fontsize=8, loc="upper left", labelcolor=INK)


def _curve(axis: Any, rows: list[Row], name: str, label: str, colour: str) -> None:
    """Draws a positive column on a logarithmic scale; rows without it are left out."""
    points = [(row["env_steps"], row[name]) for row in rows if row[name] is not None and row[name] > 0]
    if points:
        axis.semilogy(*zip(*points, strict=True), color=colour, linewidth=1.2)
    axis.set_ylabel(label, color=colour)
