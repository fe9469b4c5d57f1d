"""Figures of studies."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from bathysphere.plots import BLUE, INK, ORANGE, plain, tidy
from bathysphere.studies.study import Record, Study

if TYPE_CHECKING:
    from matplotlib.figure import Figure

# Hollow, so that a number of ours at the same place stays visible.
_PAPER: dict[str, Any] = {
    "marker": "D",
    "linestyle": "none",
    "markersize": 9,
    "markerfacecolor": "none",
    "markeredgecolor": ORANGE,
    "markeredgewidth": 1.8,
}


def steps_by_size(study: Study, records: list[Record]) -> Figure:
    """Draws, in a panel for each setting, the steps every run took to be solved against its size.

    Orange dots are runs that were not solved; they lie at the steps they were given.
    """
    from matplotlib.figure import Figure

    count = len(study.settings)
    figure = Figure(figsize=(3.1 * count + 0.6, 3.5), layout="constrained", facecolor="white")
    axes = figure.subplots(1, count, sharex=True, sharey=True, squeeze=False)[0]
    for axis, setting in zip(axes, study.settings, strict=True):
        mine = [r for r in records if r["setting"] == setting.name and r["state"] == "finished"]
        for is_solved, colour, label in ((True, BLUE, "solved"), (False, ORANGE, "not solved")):
            chosen = [r for r in mine if (r["solved_step"] is not None) == is_solved]
            heights = [r["solved_step"] if is_solved else r["steps"] for r in chosen]
            axis.scatter([r["size"] for r in chosen], heights, s=26, color=colour, alpha=0.8, linewidths=0, label=label)
        axis.set_title(setting.title, loc="left", fontsize=10, fontweight="bold", color=INK)
        axis.set_xlabel("N", color=INK)
        tidy(axis)
    axes[0].set_ylabel("steps to solve", color=INK)
    axes[0].yaxis.set_major_formatter(lambda steps, _: f"{steps / 1e6:g}M" if steps >= 1e5 else f"{steps:,.0f}")
    axes[0].set_ylim(bottom=0)
    axes[0].legend(frameon=False, fontsize=8, labelcolor=INK)
    return figure


def estimates(study: Study, records: list[Record]) -> Figure:
    """Draws, in a panel for each metric, every setting's number with its interval and the paper's beside it."""
    from matplotlib.figure import Figure

    count, num_settings = len(study.metrics), len(study.settings)
    size = (3.4 * count + 1.6, 0.42 * num_settings + 1.7)
    figure = Figure(figsize=size, layout="constrained", facecolor="white")
    draw_estimates(figure, study, records)
    return figure


def draw_estimates(figure: Any, study: Study, records: list[Record]) -> None:
    """Draws what `estimates` does into a figure, or a part of one."""
    rows, num_settings = study.summarise(records), len(study.settings)
    axes = figure.subplots(1, len(study.metrics), sharey=True, squeeze=False)[0]
    for axis, metric in zip(axes, study.metrics, strict=True):
        for row in (row for row in rows if row.metric is metric):
            ours, place = row.ours, study.settings.index(row.setting)
            if ours.low is not None:
                axis.plot([ours.low, ours.high], [place, place], color=BLUE, linewidth=5, alpha=0.3)
            if ours.value is not None:
                axis.plot(ours.value, place, "o", color=BLUE, markersize=7)
            if row.paper is not None:
                axis.plot(row.paper.value, place, **_PAPER)
        axis.set_title(metric.title, loc="left", fontsize=9, fontweight="bold", color=INK, wrap=True)
        if metric.kind in ("share", "rate"):
            axis.set_xlim(-0.03, 1.03)
            axis.xaxis.set_major_formatter(lambda share, _: f"{share:.0%}")
        elif metric.kind != "return":  # which may lie below 0, and far from it
            axis.set_xlim(left=0)
            axis.xaxis.set_major_formatter(lambda number, _: f"{number:,.0f}")
        axis.locator_params(axis="x", nbins=5)
        tidy(axis)
    axes[0].set_yticks(range(num_settings), [plain(setting.title) for setting in study.settings])
    axes[0].set_ylim(num_settings - 0.5, -0.5)
    handles = [axes[0].plot([], [], "o", color=BLUE, label="here, with its 95% interval")[0]]
    if study.source:
        handles.append(axes[0].plot([], [], label="paper", **_PAPER)[0])
    figure.legend(handles=handles, loc="outside lower left", ncols=2, frameon=False, fontsize=8, labelcolor=INK)
