"""Pictures of a run: how win rate and return grew, and what observers draw."""

from __future__ import annotations

import math
from collections.abc import Mapping
from itertools import pairwise
from typing import TYPE_CHECKING, Any, NamedTuple

from bathysphere.learning.learner import Learner
from bathysphere.learning.progress import Progress
from bathysphere.plots import DEEP, GOLD, INK, plain, png
from bathysphere.runs.directory import RunDirectory
from bathysphere.runs.metrics import Row, read_rows
from bathysphere.statistics import wilson_interval
from bathysphere.storage.files import writing

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_MAX_INTERVALS, _MIN_EPISODES = 40, 8  # of the curves: an interval of fewer episodes says little


def draw_pictures(directory: RunDirectory, trainer: Learner, observed: Mapping[str, Figure]) -> None:
    """Writes `learning.png` and what observers have drawn, by file name."""
    figures, config = dict(observed), directory.load_config()
    if rows := read_rows(directory.metrics_file):
        first_ends = config.batch * trainer.max_steps
        figures["learning.png"] = learning_figure(rows, trainer.progress, config.preset, first_ends)
    with writing(directory.pictures, "The run itself is saved."):
        directory.pictures.mkdir(exist_ok=True)
        for name, figure in figures.items():
            (directory.pictures / name).write_bytes(png(figure))


def learning_figure(rows: list[Row], progress: Progress, preset: str, first_ends: int = 0) -> Figure:
    """Draws win rate and return of each interval of a run, and below them ensemble standard deviation and loss.

    The win rate is left out where no episode was solved but returns differ, the return where all are the same.

    Args:
      rows: of the metrics.
      progress: at the end of the run.
      preset: its name.
      first_ends: steps after which all episodes that began first have ended.
    """
    from matplotlib.figure import Figure

    parts = intervals(rows, progress, first_ends)
    returns = [part for part in parts if part.return_mean is not None]
    has_returns = progress.best_return != progress.worst_return and bool(returns)
    draw = [_draw_win_rate] if progress.wins or not has_returns else []
    draw += [_draw_returns] if has_returns else []
    figure = Figure(figsize=(7.2, 3.0 + 2.2 * len(draw)), layout="constrained", facecolor="white")
    *upper, std = figure.subplots(len(draw) + 1, 1, sharex=True, height_ratios=[3] * len(draw) + [2])
    for axis, draw_one in zip(upper, draw, strict=True):
        draw_one(axis, parts if draw_one is _draw_win_rate else returns)
        if progress.solved_step is not None:
            label = f"solved at step {progress.solved_step:,}"
            axis.axvline(progress.solved_step, color=GOLD, linewidth=1.2, linestyle="--", label=label)
        # Above the axis, where no curve is.
        place = {"loc": "lower right", "bbox_to_anchor": (1.0, 1.0), "borderaxespad": 0.2, "ncols": 3}
        axis.legend(frameon=False, fontsize=8, labelcolor=INK, handlelength=1.6, columnspacing=1.2, **place)
        axis.spines["right"].set_visible(False)
    upper[0].set_title(plain(preset), loc="left", fontsize=11, fontweight="bold", color=INK)
    _curve(std, rows, "ensemble_std", "ensemble std", DEEP)
    loss = std.twinx()
    _curve(loss, rows, "loss", "loss", GOLD, "--")
    std.set_xlabel("environment steps", color=INK)
    std.xaxis.set_major_formatter(lambda step, _: f"{step:,.0f}")
    for axis in (*upper, std, loss):
        axis.tick_params(which="both", colors=INK, labelsize=8)
        axis.spines["top"].set_visible(False)
        axis.set_xlim(0, progress.env_steps)
    return figure


class Interval(NamedTuple):
    """A part of a run."""

    begin: int  # environment steps ...
    end: int  # ... at its beginning and end
    episodes: int  # that finished in it
    wins: int
    return_mean: float | None = None  # of those episodes; None if it was not counted
    return_min: float = math.inf
    return_max: float = -math.inf


def intervals(rows: list[Row], progress: Progress, first_ends: int = 0) -> list[Interval]:
    """Cuts a run into up to 40 intervals of about equally many episodes, and at least 8 if there are as many.

    Rows without wins, which version 0.1 wrote, are left out. The first interval lasts until `first_ends`, when all
    episodes that began first have ended: before, only short ones have, which are the wins or the failures of a world.
    """
    moments = [(row["env_steps"], row["episodes"], row["wins"]) for row in rows if "wins" in row]
    first = (0, 0, 0) if moments and len(moments) == len(rows) else moments[0] if moments else None
    if first is None:
        return []
    least = max(_MIN_EPISODES, (progress.episodes - first[1]) / _MAX_INTERVALS)
    edges = [first]
    for moment in moments:
        if moment[1] - edges[-1][1] >= least and moment[0] >= first_ends:
            edges.append(moment)
    last = (progress.env_steps, progress.episodes, progress.wins)
    if last[1] - edges[-1][1] < _MIN_EPISODES and len(edges) > 1:
        edges.pop()  # too few for an interval of their own
    edges.append(last)
    return [
        Interval(a[0], b[0], b[1] - a[1], b[2] - a[2], *_returns(rows, a[0], b[0]))
        for a, b in pairwise(edges)
        if b[1] > a[1]
    ]


def _returns(rows: list[Row], begin: int, end: int) -> tuple[float | None, float, float]:
    """Returns mean, lowest and highest return of the episodes between two moments that have rows."""
    total, count, low, high = 0.0, 0, math.inf, -math.inf
    for before, row in pairwise([{"episodes": 0}, *rows]):
        if begin < row["env_steps"] <= end and row.get("return_mean") is not None:
            episodes = row["episodes"] - before["episodes"]
            total, count = total + episodes * row["return_mean"], count + episodes
            low, high = min(low, row["return_min"]), max(high, row["return_max"])
    return total / count if count else None, low, high


def _places(parts: list[Interval]) -> tuple[list[float], list[Interval]]:
    """Returns where intervals are drawn: in their middles, and one alone from its beginning to its end."""
    if len(parts) == 1:
        return [parts[0].begin, parts[0].end], 2 * parts
    return [(part.begin + part.end) / 2 for part in parts], parts


def _draw_win_rate(axis: Any, parts: list[Interval]) -> None:
    middles, parts = _places(parts)
    bounds = [wilson_interval(part.wins, part.episodes) for part in parts]
    lows, highs = ([bound[side] for bound in bounds] for side in (0, 1))
    axis.fill_between(middles, lows, highs, color=DEEP, alpha=0.15, linewidth=0, label="95 % interval")
    rates = [part.wins / part.episodes for part in parts]
    axis.plot(middles, rates, "o-", color=DEEP, linewidth=2, markersize=4, label="episodes of each interval")
    axis.set_ylim(-0.02, 1.02)
    axis.yaxis.set_major_formatter(lambda share, _: f"{share:.0%}")
    axis.set_ylabel("win rate", color=INK)


def _draw_returns(axis: Any, parts: list[Interval]) -> None:
    middles, parts = _places(parts)
    lows, highs = [part.return_min for part in parts], [part.return_max for part in parts]
    axis.fill_between(middles, lows, highs, color=DEEP, alpha=0.15, linewidth=0, label="lowest to highest")
    means = [part.return_mean for part in parts]
    axis.plot(middles, means, "o-", color=DEEP, linewidth=2, markersize=4, label="mean of each interval")
    axis.set_ylabel("return", color=INK)


def _curve(axis: Any, rows: list[Row], name: str, label: str, colour: str, style: str = "-") -> None:
    """Draws a positive column on a logarithmic scale; rows without it are left out."""
    points = [(row["env_steps"], row[name]) for row in rows if row[name] is not None and row[name] > 0]
    if points:
        axis.semilogy(
            *zip(*points, strict=True),
            color=colour,
            linewidth=1.2,
            linestyle=style,
            marker="." if len(points) < 3 else "",
        )
    axis.set_ylabel(label, color=colour)
