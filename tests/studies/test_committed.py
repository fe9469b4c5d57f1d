"""The results in this repository: they can be rendered again, no command rewrites them, and costs are theirs."""

import json
import shutil
from pathlib import Path

import pytest
from benchmarks.sokoban_single import read, table

from bathysphere.cli import main
from bathysphere.storage.files import write_json
from bathysphere.studies import STUDIES, cost
from bathysphere.studies.cost import measured_before, most_steps
from bathysphere.studies.folder import StudyFolder
from bathysphere.studies.records import write_records
from bathysphere.studies.report import render

RESULTS = Path(__file__).parents[2] / "results"
BENCHMARKED = {"sokoban-planners", "sokoban-single-budget"}  # by scripts in benchmarks, which render them


@pytest.fixture(params=sorted({path.name for path in RESULTS.iterdir()} - BENCHMARKED))
def committed(request, tmp_path):
    """A study's name, its folder, and a copy of it."""
    copy = shutil.copytree(RESULTS / request.param, tmp_path / "out")
    return request.param, RESULTS / request.param, copy


def close(value):
    """Intervals are computed again, and may differ in their last digits."""
    return pytest.approx(value, rel=1e-12) if isinstance(value, float) else value


def test_rendering_gives_the_same_table_and_summary(committed, capsys):
    name, original, copy = committed
    assert main(["reproduce", name, "--out", str(copy), "--render", "--json"]) == 0
    summary, old = json.loads(capsys.readouterr().out), json.loads((original / "summary.json").read_text())
    for row, committed_row in zip(summary.pop("rows"), old.pop("rows"), strict=True):
        assert row == {name: close(value) for name, value in committed_row.items()}
    assert summary == old
    for file in ("table.md", "results.csv"):
        assert (copy / file).read_text() == (original / file).read_text()
    assert summary["command"] in (copy / "report.html").read_text()


def test_results_can_be_rendered_when_one_run_has_ended(committed):
    name, _, copy = committed
    folder = StudyFolder(copy)
    first = folder.load()[1][0]
    write_records([first], folder.records_file, folder.curves_file if STUDIES[name].curve else None)
    assert {row["n"] for row in render(STUDIES[name], folder)["rows"]} == {0, 1}


def test_running_a_study_never_loses_them(committed, capsys):
    name, _, copy = committed
    budget = json.loads((copy / "summary.json").read_text())["budget"]
    folder = StudyFolder(copy)
    records = folder.load()[1]
    records[-1]["config_hash"] = "of other settings"
    write_records(records, folder.records_file, folder.curves_file if STUDIES[name].curve else None)
    before = {f.name: f.read_bytes() for f in copy.iterdir()}
    assert main(["reproduce", name, "--budget", budget, "--out", str(copy), "--jobs", "1"]) == 2
    said = capsys.readouterr().err
    assert "would lose" in said
    assert "another --out" in said
    assert "--render" in said
    assert {f.name: f.read_bytes() for f in copy.iterdir()} == before


def test_the_table_of_single_boards_is_that_of_its_rows():
    folder = RESULTS / "sokoban-single-budget"
    assert (folder / "table.md").read_text() == table(read(folder / "results.csv")) + "\n"


def test_every_study_has_results():
    assert {path.name for path in RESULTS.iterdir()} == STUDIES.keys() | BENCHMARKED


def speeds_of_results():
    """Returns what speeds.json should hold: of every study with results, and the budgets that run the same settings."""
    machines, speeds = set(), {}
    for name, study in STUDIES.items():
        about, records = StudyFolder(RESULTS / name).load()
        finished = [record for record in records if record["state"] == "finished"]
        machines |= {record["machine"] for record in finished}
        kinds = {}  # how fast each setting was, as what it was run
        for trial in study.trials(about["budget"], 1):
            runs = [record for record in finished if record["setting"] == trial.setting]
            kinds[kind(trial)] = sum(r["env_steps"] for r in runs) / sum(r["wall_seconds"] for r in runs)
        speeds[name] = {}
        for budget in study.budgets:
            trials = study.trials(budget)
            if all(kind(trial) in kinds for trial in trials):
                steps, seconds = sum(map(most_steps, trials)), sum(most_steps(t) / kinds[kind(t)] for t in trials)
                speeds[name][budget] = round(steps / seconds)
    return {"machine": "; ".join(sorted(machines)), "env_steps_per_second": speeds}


def kind(trial):
    return trial.setting, trial.config.preset, trial.config.search.passes, trial.config.values


def test_costs_are_those_of_the_results():
    """If it fails because results or budgets are new: `python -m tests.studies.test_committed` writes the file anew."""
    assert measured_before() == speeds_of_results()


if __name__ == "__main__":
    write_json(Path(cost.__file__).with_name("speeds.json"), speeds_of_results())
