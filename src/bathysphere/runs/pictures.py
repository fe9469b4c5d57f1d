"""Pictures of a run: what the ensemble did not know, and how the win rate grew."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from bathysphere.domains import ToyMontezuma
from bathysphere.errors import BathysphereError
from bathysphere.learning.progress import Progress
from bathysphere.learning.trainer import Trainer
from bathysphere.runs.directory import RunDirectory
from bathysphere.runs.metrics import Row, read_rows
from bathysphere.runs.snapshots import Snapshots
from bathysphere.runs.visits import Visits
from bathysphere.values.ensemble import Ensemble

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_PANELS = 5
_INK, _ROCK, _DEEP, _GOLD = "#1b2a41", "#e4e0da", "#0b4f9e", "#e0a100"


def draw_pictures(directory: RunDirectory, snapshots: Snapshots, visits: Visits, trainer: Trainer) -> None:
    """Writes `learning.png`, for Deep-sea `uncertainty.png`, and for Toy Montezuma `rooms.png`."""
    progress = trainer.progress
    try:
        directory.pictures.mkdir(exist_ok=True)
        if isinstance(trainer.domain, ToyMontezuma):
            rooms_figure(trainer.domain, visits, trainer.values).savefig(directory.pictures / "rooms.png", dpi=160)
        if snapshots.steps:
            figure = uncertainty_figure(snapshots, progress)
            figure.savefig(directory.pictures / "uncertainty.png", dpi=160)
        rows = read_rows(directory.metrics_file)
        if len(rows) > 1:
            learning_figure(rows, progress, directory.load_config().preset).savefig(
                directory.pictures / "learning.png", dpi=160
            )
    except OSError as error:
        raise BathysphereError(
            f"Cannot write {directory.pictures}: {error.strerror or error}. The run itself is saved."
        ) from error


def uncertainty_figure(snapshots: Snapshots, progress: Progress) -> Figure:
    """Draws the members' standard deviation in every cell before, during and after training, in one scale.

    Blue is what the ensemble does not know, white what it knows; grey has no value: no dive reaches the upper
    right, and on the sea bed dives are over.
    """
    from matplotlib.colors import LinearSegmentedColormap
    from matplotlib.figure import Figure

    chosen = choose_panels(snapshots.steps, progress.solved_step)
    shades = ["#ffffff", "#cfe3f5", "#74b0e0", "#1f6fbf", "#08306b"]
    colours = LinearSegmentedColormap.from_list("sea", shades).with_extremes(bad=_ROCK)
    top = float(np.nanmax(snapshots.maps[0]))
    figure = Figure(figsize=(2.35 * len(chosen) + 0.9, 3.15), layout="constrained", facecolor="white")
    axes = figure.subplots(1, len(chosen), squeeze=False)[0]
    for panel, (axis, index) in enumerate(zip(axes, chosen, strict=True)):
        image = axis.imshow(snapshots.maps[index], cmap=colours, vmin=0.0, vmax=top, interpolation="nearest")
        side = len(snapshots.maps[index])
        axis.plot(side - 1, side - 1, marker="*", markersize=10, color=_GOLD, markeredgecolor="white", clip_on=False)
        axis.set_xticks([])
        axis.set_yticks([])
        for spine in axis.spines.values():
            spine.set_color("#b8b2a8")
        moment = "before" if panel == 0 else "after" if panel == len(chosen) - 1 else "during"
        axis.set_title(moment, color=_INK, fontsize=10, fontweight="bold", pad=5)
        axis.set_xlabel(f"step {snapshots.steps[index]:,}", color=_INK, fontsize=9)
    bar = figure.colorbar(image, ax=axes, shrink=0.8, aspect=16, pad=0.015, extend="max")
    bar.set_label("ensemble standard deviation", color=_INK, fontsize=8)
    bar.ax.tick_params(labelsize=7, colors=_INK)
    bar.outline.set_visible(False)
    return figure


def rooms_figure(domain: ToyMontezuma, visits: Visits, values: Ensemble) -> Figure:
    """Draws the map twice: coloured by the number of visits, and by the members' standard deviation.

    Each is scaled to its largest value, visits by their logarithm. Cells without visits keep their tiles on
    the left; on the right they are judged as if reached with every key and door untouched.
    """
    from matplotlib.figure import Figure

    counts = np.where(visits.cells > 0, np.log1p(visits.cells), np.nan)
    panels = (
        (f"{visits.num_rooms} of {len(domain.rooms)} rooms visited", counts),
        ("ensemble standard deviation", visits.std_map(values)),
    )
    figure = Figure(figsize=(11.0, 3.2), layout="constrained", facecolor="white")
    for axis, (title, heat) in zip(figure.subplots(1, 2), panels, strict=True):
        top = np.nanmax(heat, initial=0.0)
        axis.imshow(domain.render_world(heat=heat / top if top > 0 else heat))
        axis.set_title(title, color=_INK, fontsize=11, fontweight="bold", loc="left")
        note = f"blue: few visits, orange: {np.expm1(top):,.0f}" if heat is counts else f"orange: {top:.3g}"
        axis.set_xlabel(note, color=_INK, fontsize=9)
        axis.set_xticks([])
        axis.set_yticks([])
    return figure


def choose_panels(steps: list[int], solved_step: int | None) -> list[int]:
    """Returns up to five snapshots: the first, three evenly spread until the run was solved, and the last."""
    last = len(steps) - 1
    end = steps[last] if solved_step is None else min(solved_step, steps[last])
    wanted = np.linspace(0, end, _PANELS)[1:-1]
    during = [int(np.argmin(np.abs(np.array(steps) - moment))) for moment in wanted]
    return sorted({0, *during, last})


def learning_figure(rows: list[Row], progress: Progress, preset: str) -> Figure:
    """Draws win rate, ensemble standard deviation and loss over real steps."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(7.2, 5.2), layout="constrained", facecolor="white")
    win, std = figure.subplots(2, 1, sharex=True, height_ratios=[3, 2])
    steps = [row["env_steps"] for row in rows]
    rates = [row["win_rate_100"] for row in rows]
    win.fill_between(steps, rates, color=_DEEP, alpha=0.12, linewidth=0)
    win.plot(steps, rates, color=_DEEP, linewidth=2, label="last 100 games")
    win.plot(
        steps,
        [row["win_rate_1000"] for row in rows],
        color=_DEEP,
        linewidth=1,
        linestyle=":",
        label="last 1000",
    )
    win.set_ylim(0, 1.02)
    win.yaxis.set_major_formatter(lambda share, _: f"{share:.0%}")
    win.set_ylabel("win rate")
    win.set_title(preset, loc="left", fontsize=11, fontweight="bold", color=_INK)
    _mark(win, progress)
    win.legend(frameon=False, fontsize=8, loc="lower right")
    _curve(std, rows, "ensemble_std", "ensemble std", _DEEP)
    loss = std.twinx()
    _curve(loss, rows, "loss", "loss", _GOLD)
    std.set_xlabel("environment steps")
    std.xaxis.set_major_formatter(lambda step, _: f"{step:,.0f}")
    for axis in (win, std, loss):
        axis.tick_params(which="both", colors=_INK, labelsize=8)
        axis.spines["top"].set_visible(False)
        axis.set_xlim(0, steps[-1])
    win.spines["right"].set_visible(False)
    return figure


def _mark(axis: Any, progress: Progress) -> None:
    if progress.solved_step is not None:
        axis.axvline(progress.solved_step, color=_GOLD, linewidth=1.2, linestyle="--", label="solved")


def _curve(axis: Any, rows: list[Row], name: str, label: str, colour: str) -> None:
    """Draws a positive column on a logarithmic scale; rows without it are left out."""
    points = [(row["env_steps"], row[name]) for row in rows if row[name] is not None and row[name] > 0]
    if points:
        axis.semilogy(*zip(*points, strict=True), color=colour, linewidth=1.2)
    axis.set_ylabel(label, color=colour)
