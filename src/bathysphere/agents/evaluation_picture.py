"""Pictures of what more planning gains."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import cycle
from pathlib import Path
from typing import Any

import numpy as np

from bathysphere.agents.evaluation import WORDS, Evaluation
from bathysphere.plots import BLUE, GREY, INK, ORANGE, plain, png, tidy
from bathysphere.statistics import wilson_interval
from bathysphere.storage.files import write_file

_COLOURS = (BLUE, ORANGE, INK, GREY)
_LINE_HEIGHT = 0.055  # of a name beside the end of its curve, as a share


def draw_passes(evaluations: Sequence[Evaluation], path: Path) -> None:
    """Draws the rate with its interval against the passes of planning per step, as a PNG.

    Args:
      evaluations: of one agent and one unit, each with other passes; at least one.
      path: the file.
    """
    from matplotlib.figure import Figure

    rows = sorted(evaluations, key=lambda evaluation: evaluation.passes or 0)
    passes = [row.passes or 0 for row in rows]
    low, high = zip(*(row.interval for row in rows), strict=True)
    figure = Figure(figsize=(5.2, 3.6), layout="constrained", facecolor="white")
    axis = figure.subplots()
    axis.fill_between(passes, low, high, color=BLUE, alpha=0.2)
    axis.plot(passes, [row.rate for row in rows], "o-", color=BLUE)
    axis.set_xscale("log")
    axis.set_xticks(passes, [f"{number:,}" for number in passes])
    axis.minorticks_off()
    axis.yaxis.set_major_formatter(lambda share, _: f"{share:.0%}")
    axis.set_xlabel("passes of planning per step", color=INK)
    axis.set_ylabel(WORDS[rows[0].unit].what, color=INK)
    axis.set_title(f"{plain(rows[0].agent)}, with 95 % intervals", loc="left", fontsize=10, color=INK)
    tidy(axis)
    write_file(path, png(figure))


def draw_planners(evaluations: Sequence[Evaluation], path: Path) -> None:
    """Draws the share that each planner solves with no more than so many expansions, with its interval, as a PNG.

    Args:
      evaluations: of one agent and one unit, each with another planner; at least one.
      path: the file.
    """
    from matplotlib.figure import Figure

    figure = Figure(figsize=(6.4, 4.0), layout="constrained", facecolor="white")
    axis = figure.subplots()
    fewest = min((row.solved_after[0] for row in evaluations if row.solved), default=1)
    most = max(row.most_expansions for row in evaluations)
    axis.set_xscale("log")
    axis.set_xlim(fewest / 1.25, max(most, 10 * fewest) * 1.15)
    axis.set_ylim(0, 1.02)
    places = _apart([row.rate for row in evaluations])
    for row, place, colour in zip(evaluations, places, cycle(_COLOURS), strict=False):
        # Whoever has solved everything has done so with more expansions too.
        _draw_solved(axis, row, most if row.solved == row.count else row.most_expansions, colour)
        text, beside = f"{row.planner}  {row.rate:.1%}", ("axes fraction", "data")
        axis.annotate(text, (1.01, place), xycoords=beside, color=colour, fontsize=9, va="center")
    axis.xaxis.set_major_formatter(lambda number, _: f"{number:,.0f}")
    axis.yaxis.set_major_formatter(lambda share, _: f"{share:.0%}")
    first = evaluations[0]
    axis.set_xlabel(f"expansions allowed per {first.unit}", color=INK)
    axis.set_ylabel(WORDS[first.unit].what, color=INK)
    title = f"{plain(first.agent)}, {first.count:,} {WORDS[first.unit].count}, with 95 % intervals"
    axis.set_title(title, loc="left", fontsize=10, color=INK)
    tidy(axis)
    write_file(path, png(figure))


def _draw_solved(axis: Any, row: Evaluation, end: int, colour: str) -> None:
    """Draws one planner's curve, from nothing solved up to `end` expansions."""
    numbers, solved = np.unique(row.solved_after, return_counts=True)
    expansions = np.concatenate([axis.get_xlim()[:1], numbers, [end]])
    counts = np.concatenate([[0], solved.cumsum(), [row.solved]]).astype(int)
    low, high = zip(*(wilson_interval(count, row.count) for count in counts.tolist()), strict=True)
    axis.fill_between(expansions, low, high, step="post", color=colour, alpha=0.11, linewidth=0)
    axis.step(expansions, counts / row.count, where="post", color=colour, linewidth=1.8)
    axis.plot(expansions[-1:], [row.rate], "o", color=colour, markersize=5, clip_on=False)


def _apart(heights: Sequence[float]) -> list[float]:
    """Returns heights in [0, 1] near the given ones that leave room for a line of text each."""
    places, free = dict[int, float](), 1.0
    for below, number in zip(range(len(heights) - 1, -1, -1), np.argsort(heights)[::-1].tolist(), strict=True):
        places[number] = max(min(heights[number], free), below * _LINE_HEIGHT)
        free = places[number] - _LINE_HEIGHT
    return [places[number] for number in range(len(heights))]
