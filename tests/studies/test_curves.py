import numpy as np
import pytest

from bathysphere.studies import STUDIES
from bathysphere.studies.curves import explored, learning_curves, win_rates
from bathysphere.studies.statistics import bootstrap, mean_band
from tests.studies.tiny_stages import STAGES

MULTI = STUDIES["sokoban-multi"]
STEPS, RATES = [1000, 2000, 3000, 4000], [0.1, 0.45, 0.85, 0.8]


def record(setting="ensemble", seed=0, rates=RATES, sizes=(None, 50.0, None, 30.0)):
    curve = {
        "env_steps": list(STEPS),
        "episodes": [100, 200, 400, 800],
        "win_rate_1000": list(rates),
        "graph_size": list(sizes),
    }
    return {"setting": setting, "seed": seed, "state": "finished", "win_rate_1000": rates[-1], "curve": curve}


def values(one):
    return {metric.name: metric.value(one) for metric in MULTI.metrics}


def test_metrics_are_read_off_the_curve():
    assert values(record()) == {
        "win-rate": pytest.approx(80.0),
        "games-40": 200,
        "steps-50": 3000,
        "steps-80": 3000,
        "steps-89": None,
        "graph": pytest.approx(31.4, abs=0.1),  # of 30 in the latest 600 games, 50 before
    }
    never = values(record(rates=[0.0] * 4, sizes=[None] * 4))
    assert [never[name] for name in ("games-40", "steps-50", "graph")] == [None] * 3


def test_rows_without_games_are_left_out():
    steps, sizes = explored(record())
    assert steps.tolist() == [2000, 4000]
    old, new = (1 - np.exp(-200 / 300)) * np.exp(-600 / 300), 1 - np.exp(-600 / 300)
    assert sizes.tolist() == pytest.approx([50, (50 * old + 30 * new) / (old + new)])


def test_a_rate_of_a_few_games_is_none():
    lucky = record(rates=[1.0, 0.2, 0.3, 0.6])
    lucky["curve"]["episodes"] = [1, 99, 100, 200]
    assert values(lucky)["steps-50"] == 4000
    assert explored(lucky)[0].tolist() == [4000]
    steps, rates = win_rates(lucky)
    assert (steps.tolist(), rates.tolist()) == ([3000, 4000], [0.3, 0.6])


def test_the_band_of_a_mean_is_its_bootstrap_interval():
    curves = np.random.default_rng(0).exponential(size=(8, 3))
    mean, low, high = mean_band(curves)
    for t in range(3):
        one = bootstrap(curves[:, t].tolist(), np.mean)
        assert mean[t] == pytest.approx(one.value)
        assert (low[t], high[t]) == pytest.approx((one.low, one.high), abs=0.08)
    single = curves[:1]
    assert all(np.array_equal(part, single[0]) for part in mean_band(single))


def test_the_figure_shows_the_mean_of_runs_and_the_papers_numbers():
    shorter = record(seed=1, rates=[0.3, 0.65, 0.95, 1.0])
    for column in shorter["curve"].values():
        column.pop()
    failed = {"setting": "no-ensemble", "seed": 0, "state": "failed", "error": "no luck"}
    figure = learning_curves(MULTI, [record(), shorter, failed])
    wins, graph = figure.axes
    lines = [line for line in wins.lines if len(line.get_xdata())]
    (mean,) = [line for line in lines if len(line.get_xdata()) > 2]
    assert mean.get_xdata().tolist() == [1000, 2000, 3000]  # as far as all runs have come
    assert mean.get_ydata().tolist() == pytest.approx([0.2, 0.55, 0.9])
    (sizes,) = graph.lines
    assert sizes.get_ydata().tolist() == [50.0]
    levels = sorted(line.get_ydata()[0] for line in lines if line is not mean)
    assert levels == pytest.approx([0.847, 0.89])
    assert "means of runs" in graph.get_xlabel()
    assert "one run" in learning_curves(MULTI, [record()]).axes[1].get_xlabel()
    titles = [text.get_text() for text in wins.get_legend().get_texts()]
    assert titles == ["ensemble, K = 3"]  # of those that have finished


def test_a_figure_of_nothing():
    assert len(learning_curves(STAGES, []).axes) == 2
