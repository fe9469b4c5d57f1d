"""Smoothing, groups of seeds and their intervals."""

from dataclasses import replace

import numpy as np
import pytest
from scipy import stats

from bathysphere.studio.charts import curves_chart
from bathysphere.studio.curves import Curve, as_csv, curve_of, groups, mean_curve, smoothed
from bathysphere.studio.folder import RunsFolder


def test_smoothing_keeps_constants_and_does_nothing_at_zero():
    values = np.random.default_rng(0).random(50)
    assert np.allclose(smoothed(values, 0.0), values)
    assert np.allclose(smoothed(np.full(50, 3.0), 0.9), 3.0)
    assert smoothed(values, 0.9).std() < values.std()


def test_rows_without_the_metric_are_left_out():
    rows = [{"env_steps": 1, "loss": None}, {"env_steps": 2, "loss": 0.5}, {"env_steps": 3}]
    curve = curve_of("a", rows, "loss")
    assert (curve.steps.tolist(), curve.values.tolist()) == ([2.0], [0.5])
    assert len(curve_of("a", [], "loss").steps) == 0


def test_the_interval_over_seeds_is_students():
    rng = np.random.default_rng(1)
    steps = np.arange(5.0)
    curves = [Curve(str(i), steps, rng.random(5)) for i in range(4)]
    mean = mean_curve("all", curves)
    last = [curve.values[-1] for curve in curves]
    low, high = stats.t.interval(0.95, 3, np.mean(last), stats.sem(last))
    assert mean.values[-1] == pytest.approx(np.mean(last))
    assert (mean.low[-1], mean.high[-1]) == (pytest.approx(low), pytest.approx(high))
    assert mean_curve("one", curves[:1]).low is None
    assert len(mean_curve("none", []).steps) == 0


def test_runs_that_differ_in_their_seed_are_one_group(folder):
    runs = [run for run in RunsFolder(folder).runs() if run.name in ("sea-0", "sea-1", "neutral")]
    found = {name: [run.name for run in group] for name, group in groups(runs).items()}
    assert found == {"deep-sea, search.risk_coef 10.0, 2 seeds": ["sea-0", "sea-1"], "neutral": ["neutral"]}


def test_a_groups_name_has_the_settings_that_tell_it_from_the_others(folder):
    (some,) = [run for run in RunsFolder(folder).runs() if run.name == "sea-0"]

    def runs(name, **settings):
        return [
            replace(some, name=f"{name}-{seed}", settings=some.settings | {"seed": seed, **settings}) for seed in (0, 1)
        ]

    plain = {"search.name": None, "search.order": None, "search.risk_coef": 0.0}
    other = {"search.name": "best-first", "search.order": "steps", "search.risk_coef": 0.0}
    found = groups(runs("a", **plain) + runs("b", **plain | {"search.risk_coef": 5.0}) + runs("c", **other))
    assert [name.removeprefix("deep-sea, ") for name in found] == [
        "search.risk_coef 0.0, 2 seeds",
        "search.risk_coef 5.0, 2 seeds",
        "search.risk_coef 0.0, search.name best-first, 2 seeds",
    ]


def test_presets_tell_groups_apart_before_settings_do_and_what_decides_nothing_never_does(folder):
    (some,) = [run for run in RunsFolder(folder).runs() if run.name == "sea-0"]
    told = [("a", {"batch": 1}), ("b", {"batch": 2}), ("b", {"batch": 2, "log_every": 7})]
    runs = [
        replace(some, name=f"{number}-{seed}", preset=preset, settings=some.settings | {"seed": seed, **settings})
        for number, (preset, settings) in enumerate(told)
        for seed in (0, 1)
    ]
    assert list(groups(runs)) == ["a, 2 seeds", "b, 2 seeds", "b, 2 seeds (2-0)"]
    more = [replace(run, name=f"more {run.name}", settings=run.settings | {"batch": 3}) for run in runs[2:4]]
    assert list(groups(runs[:4] + more)) == ["a, batch 1, 2 seeds", "b, batch 2, 2 seeds", "b, batch 3, 2 seeds"]


def test_charts_and_copies_hold_every_point():
    curve = Curve('a "b"', np.arange(3.0), np.arange(3.0), np.zeros(3), np.full(3, 4.0), 2)
    drawn = curves_chart([curve, Curve("c", np.arange(2.0), np.ones(2))], "loss", False)["series"]
    assert [len(series["data"]) for series in drawn] == [3, 3, 3, 2]
    assert drawn[1]["data"][2] == [2.0, 4.0]
    assert {series["stackStrategy"] for series in drawn[:2]} == {"all"}  # else bands that begin below zero are torn
    assert as_csv([curve]).splitlines()[1:] == [f'"a ""b""",{i},{i},0,4' for i in range(3)]
