"""A picture of what more planning gains."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from bathysphere.agents.evaluation import WORDS, Evaluation
from bathysphere.plots import BLUE, INK, png, tidy
from bathysphere.storage.files import write_file


def draw_passes(evaluations: Sequence[Evaluation], path: Path) -> None:
    """Draws the rate with its interval against the passes of planning per step, as a PNG.

    Args:
      evaluations: of one agent and one unit, each with other passes; at least one.
      path: the file.
    """
    from matplotlib.figure import Figure

    rows = sorted(evaluations, key=lambda evaluation: evaluation.passes)
    passes = [row.passes for row in rows]
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
    axis.set_title(f"{rows[0].agent}, with 95 % intervals", loc="left", fontsize=10, color=INK)
    tidy(axis)
    write_file(path, png(figure))
