"""Studies whose runs are built on other runs, are evaluated and keep their curves."""

import json
import shutil
import signal
import subprocess
import sys
from dataclasses import replace

import pandas as pd
import pytest

from bathysphere.agents.loading import load_trained
from bathysphere.config.convert import override
from bathysphere.runs.directory import RunDirectory
from bathysphere.studies.cost import mean_speed, most_steps
from bathysphere.studies.scheduler import plan, run_all
from bathysphere.studies.study import Towers
from tests.studies.test_studies import Nobody, frame, stopped
from tests.studies.tiny_stages import ABOVE, BELOW, BROKEN, GAMES, STAGES, make_study


def command(out):
    return [sys.executable, "-m", "tests.studies.tiny_stages", str(out), "--jobs", "2", "--json"]


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    """The study, run by the command from beginning to end. Nobody changes it."""
    out = tmp_path_factory.mktemp("finished") / "out"
    done = subprocess.run(command(out), capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return out, json.loads(done.stdout)


def test_runs_come_after_those_they_are_built_on():
    trials = make_study(replace(ABOVE, towers=Towers("below", 2)), BELOW).trials("small", 2)
    order = [str(trial.folder) for trial in trials]
    assert sorted(order) == ["above/seed0", "above/seed1", "below/seed0", "below/seed1", "below/seed2"]
    for trial in trials:
        assert all(order.index(str(tower)) < order.index(str(trial.folder)) for tower in trial.towers)
    towers = {str(trial.folder): [str(tower) for tower in trial.towers] for trial in trials}
    assert towers["above/seed0"] == ["below/seed0", "below/seed1"]
    assert towers["above/seed1"] == ["below/seed1", "below/seed2"]
    assert towers["below/seed2"] == []
    above = next(trial.config for trial in trials if trial.setting == "above")
    assert above.values.num_towers == 2
    # Only what is compared is evaluated.
    assert {(trial.setting, trial.evaluation) for trial in trials} == {("above", GAMES), ("below", 0)}


def test_the_cost_counts_evaluations_and_early_ends():
    (above,) = [trial for trial in STAGES.trials("small", 1) if trial.setting == "above"]
    assert most_steps(above) == 600 + GAMES * 15
    ends = override(above.config, {"stop": {"episodes": 5}})  # in the second round of four games of 15 moves
    assert most_steps(replace(above, config=ends)) == 2 * 4 * 15 + GAMES * 15


def test_the_speed_of_a_study_is_its_steps_by_its_seconds(monkeypatch):
    measured = []
    monkeypatch.setattr(
        "bathysphere.studies.cost.measure_speed",
        lambda config: measured.append(config) or (100.0 if config.values.num_towers else 300.0),
    )
    speeds = {}
    assert mean_speed(STAGES.trials("small", 2), speeds) == pytest.approx((2 * 690 + 2 * 600) / (2 * 6.9 + 2 * 2))
    assert len(measured) == len(speeds) == 2  # once for each kind of run


def test_the_run_above_holds_the_weights_of_those_below(finished):
    out, _ = finished
    config = RunDirectory.open(out / "runs/above/seed0").load_config()
    assert config.towers == (str(out / "runs/below/seed0"),)
    values, below = (load_trained(out / "runs" / name / "seed0").values.weights() for name in ("above", "below"))
    for name, array in below.items():
        assert values[name.replace("network.", "network.towers.0.")].tobytes() == array.tobytes()


def test_evaluations_and_curves_are_in_the_results(finished):
    out, summary = finished
    rows = {(row["setting"], row["metric"]): row for row in summary["rows"]}
    returns = {("above", "return"), ("below", "return")}  # of all settings; the study's own metrics are each for some
    assert rows.keys() == {("above", "won"), ("below", "steps")} | returns
    played = json.loads((out / "runs/above/seed0/evaluation.json").read_text())
    assert played["episodes"] == GAMES
    assert rows["above", "won"]["value"] == played["win_rate"]
    table = frame(out)
    assert table.set_index("setting")["evaluation_episodes"].dropna().to_dict() == {"above": GAMES}
    assert "curve" not in table
    curves = pd.read_csv(out / "curves.csv")
    assert list(curves) == ["setting", "case", "seed", "env_steps", "episodes", "win_rate_1000", "graph_size"]
    metrics = pd.read_json(out / "runs/below/seed0/metrics.jsonl", lines=True)
    mine = curves[curves["setting"] == "below"]
    assert mine["env_steps"].tolist() == metrics["env_steps"].tolist()
    assert "<svg" in (out / "report.html").read_text()


def test_killed_and_continued_gives_the_same_numbers(finished, tmp_path):
    out = tmp_path / "out"
    process = stopped(command(out), signal.SIGKILL)  # when the run above has begun to learn
    assert process.returncode == -signal.SIGKILL, process.stderr
    below = {path: path.stat().st_mtime_ns for path in out.glob("runs/below/*/result.json")}
    assert len(below) == 1
    done = subprocess.run(command(out), capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert all(path.stat().st_mtime_ns == moment for path, moment in below.items())
    one, other = (frame(path).drop(columns="commit") for path in (out, finished[0]))
    pd.testing.assert_frame_equal(one, other)


def test_a_run_without_its_evaluation_is_not_finished(finished, tmp_path):
    runs = shutil.copytree(finished[0] / "runs", tmp_path / "runs")  # elsewhere, and yet the same runs
    trials = STAGES.trials("small", 1)
    assert {job.state for job in plan(trials, runs)} == {"finished"}
    played = runs / "above/seed0/evaluation.json"
    before = json.loads(played.read_text())
    played.unlink()
    jobs = plan(trials, runs)
    assert {str(job.trial.folder) for job in jobs if job.state == "waiting"} == {"above/seed0"}
    run_all(jobs, 1, Nobody())
    assert {job.state for job in jobs} == {"finished"}
    assert json.loads(played.read_text())["wins"] == before["wins"]


def test_what_is_built_on_a_failure_fails(tmp_path):
    jobs = plan(make_study(ABOVE, BROKEN).trials("small", 1), tmp_path)
    run_all(jobs, 2, Nobody())
    states = {str(job.trial.folder): (job.state, job.error) for job in jobs}
    assert "tables only" in states["below/seed0"][1]
    assert states["above/seed0"] == ("failed", "it is built on below/seed0, which failed")
    assert not (tmp_path / "above").exists()
