"""The curve of win rates shows what happened in each part of a run."""

import numpy as np
import pytest

from bathysphere.learning.progress import Progress
from bathysphere.planning import Episode
from bathysphere.plots import png
from bathysphere.runs.pictures import intervals, learning_figure


def record(outcomes, steps_per_episode=10, every=50, *, with_wins=True):
    """Returns rows and progress of a run with these outcomes."""
    progress, rows = Progress(), []
    empty = np.zeros((steps_per_episode, 1))
    for outcome in outcomes:
        progress.env_steps += steps_per_episode
        progress.record(Episode(empty, empty[:, 0], empty[:, 0], empty, outcome, not outcome, 0, 1, 0.5))
        if progress.env_steps % every == 0:
            row = {"env_steps": progress.env_steps, "episodes": progress.episodes, "ensemble_std": 0.1, "loss": None}
            rows.append(row | ({"wins": progress.wins} if with_wins else {}))
    return rows, progress


def test_every_episode_is_in_one_interval():
    outcomes = [False] * 500 + [True, False] * 150 + [True] * 203
    parts = intervals(*record(outcomes))
    assert 30 <= len(parts) <= 41
    assert sum(part.episodes for part in parts) == len(outcomes)
    assert sum(part.wins for part in parts) == sum(outcomes)
    assert [part.begin for part in parts[1:]] == [part.end for part in parts[:-1]]
    assert min(part.episodes for part in parts) >= 8
    assert parts[0].wins == 0
    assert parts[-1].wins == parts[-1].episodes  # a run that ends by winning ends at 100 %


@pytest.mark.parametrize("count", [1, 3, 9, 30])
def test_short_runs_have_few_intervals(count):
    parts = intervals(*record([True] * count, every=10))
    assert sum(part.episodes for part in parts) == count
    assert len(parts) == max(1, count // 8)


def test_no_episode_no_interval():
    assert intervals([], Progress()) == []
    rows, progress = record([])
    assert intervals([*rows, {"env_steps": 0, "episodes": 0, "wins": 0}], progress) == []


def test_rows_of_version_0_1_have_no_wins():
    rows, progress = record([True] * 100, with_wins=False)
    assert intervals(rows, progress) == []
    learning_figure(rows, progress, "old")
    newer, progress = record([True] * 100)
    resumed = rows[: len(rows) // 2] + newer[len(rows) // 2 :]
    assert sum(part.episodes for part in intervals(resumed, progress)) == 100 - resumed[len(rows) // 2]["episodes"]


def test_the_figure_says_when_the_run_was_solved():
    rows, progress = record([False] * 60 + [True] * 60)
    figure = learning_figure(rows, progress, "deep-sea")
    labels = [text.get_text() for text in figure.axes[0].get_legend().get_texts()]
    assert f"solved at step {progress.solved_step:,}" in labels
    (line,) = [line for line in figure.axes[0].lines if len(line.get_xdata()) > 2]
    assert line.get_ydata()[-1] == 1.0


def test_dollars_in_a_name_are_no_mathematics():
    rows, progress = record([False, True] * 20)
    figure = learning_figure(rows, progress, "$\\x$", 0)
    png(figure)
    assert figure.axes[0].get_title(loc="left") == r"\$\x\$"


def test_the_first_interval_waits_for_all_episodes_that_began_first():
    """In lock step, short episodes end first: here wins, after which 16 that began with them fail."""
    rows, progress = record([True] * 16 + [False] * 16 + [True] * 64)
    assert intervals(rows, progress)[0].wins == intervals(rows, progress)[0].episodes
    first = intervals(rows, progress, first_ends=320)[0]
    assert (first.end, first.episodes, first.wins) == (350, 35, 19)


def test_a_world_without_success_is_drawn_by_its_return():
    rows, progress = record([False] * 100)
    for number, row in enumerate(rows):
        row |= {"return_mean": -10.0 + number, "return_min": -12.0, "return_max": -8.0 + number}
    progress.best_return, progress.worst_return = 11.0, -12.0
    returns, below, _ = learning_figure(rows, progress, "mine").axes
    assert (returns.get_ylabel(), below.get_ylabel()) == ("return", "ensemble std")
    (line,) = returns.lines
    assert line.get_ydata()[0] == np.mean([-10.0, -9.0])  # of the ten episodes of two rows
    progress.wins = 1
    assert [axis.get_ylabel() for axis in learning_figure(rows, progress, "mine").axes[:2]] == ["win rate", "return"]


def test_no_legend_covers_a_curve():
    rows, progress = record([False] * 60 + [True] * 60)
    figure = learning_figure(rows, progress, "deep-sea")
    figure.draw_without_rendering()
    for axis in figure.axes:
        if (legend := axis.get_legend()) is not None:
            assert legend.get_window_extent().y0 >= axis.get_window_extent().y1


def test_one_interval_alone_is_drawn_with_its_band_from_beginning_to_end():
    rows, progress = record([True, False] * 4)
    axis = learning_figure(rows, progress, "short").axes[0]
    (curve,) = [line for line in axis.lines if line.get_label() == "episodes of each interval"]
    assert curve.get_xdata().tolist() == [0, 80]
    (band,) = axis.collections
    assert band.get_paths()[0].get_extents().width == 80
