"""Pictures of a run: how the win rate grew, and what observers draw."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from bathysphere.learning.progress import Progress
from bathysphere.plots import DEEP, GOLD, INK, png
from bathysphere.runs.directory import RunDirectory
from bathysphere.runs.metrics import Row, read_rows
from bathysphere.storage.files import writing

if TYPE_CHECKING:
    from matplotlib.figure import Figure


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
    """Draws win rate, ensemble standard deviation and loss over steps."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(7.2, 5.2), layout="constrained", facecolor="white")
    win, std = figure.subplots(2, 1, sharex=True, height_ratios=[3, 2])
    steps = [row["env_steps"] for row in rows]
    rates = [row["win_rate_100"] for row in rows]
    win.fill_between(steps, rates, color=DEEP, alpha=0.12, linewidth=0)
    win.plot(steps, rates, color=DEEP, linewidth=2, label="last 100 episodes")
    win.plot(
        steps,
        [row["win_rate_1000"] for row in rows],
        color=DEEP,
        linewidth=1,
        linestyle=":",
        label="last 1000",
    )
    win.set_ylim(0, 1.02)
    win.yaxis.set_major_formatter(lambda share, _: f"{share:.0%}")
    win.set_ylabel("win rate")
    win.set_title(preset, loc="left", fontsize=11, fontweight="bold", color=INK)
    _mark(win, progress)
    win.legend(frameon=False, fontsize=8, loc="lower right")
    _curve(std, rows, "ensemble_std", "ensemble std", DEEP)
    loss = std.twinx()
    _curve(loss, rows, "loss", "loss", GOLD)
    std.set_xlabel("environment steps")
    std.xaxis.set_major_formatter(lambda step, _: f"{step:,.0f}")
    for axis in (win, std, loss):
        axis.tick_params(which="both", colors=INK, labelsize=8)
        axis.spines["top"].set_visible(False)
        axis.set_xlim(0, steps[-1])
    win.spines["right"].set_visible(False)
    return figure


def _mark(axis: Any, progress: Progress) -> None:
    if progress.solved_step is not None:
        axis.axvline(progress.solved_step, color=GOLD, linewidth=1.2, linestyle="--", label="solved")


def _curve(axis: Any, rows: list[Row], name: str, label: str, colour: str) -> None:
    """Draws a positive column on a logarithmic scale; rows without it are left out."""
    points = [(row["env_steps"], row[name]) for row in rows if row[name] is not None and row[name] > 0]
    if points:
        axis.semilogy(*zip(*points, strict=True), color=colour, linewidth=1.2)
    axis.set_ylabel(label, color=colour)
