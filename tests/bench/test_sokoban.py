import json
import os
import shutil

import pytest
import torch

from bathysphere import cli
from bathysphere.bench import sokoban
from bathysphere.config.convert import override
from bathysphere.runs.runner import run
from tests.runs.small import small_sokoban

PARTS = ["inference", "gradient_steps", "planner", "rules", "replay", "boards", "other"]


@pytest.fixture(autouse=True)
def quick(monkeypatch):
    monkeypatch.setattr(sokoban, "NETWORK_SECONDS", 0.01)
    tiny = override(small_sokoban(), {"batch": 12, "domain": {"max_steps": 3, "num_boards": None}})
    monkeypatch.setattr(sokoban, "find_preset", lambda name: override(tiny, {"preset": name}))


def check(row):
    assert list(row["share"]) == PARTS
    assert sum(row["share"].values()) == pytest.approx(1.0)
    assert all(row["share"][part] > 0 for part in PARTS[:-1])
    assert row["outside_network"] == pytest.approx(1 - row["share"]["inference"] - row["share"]["gradient_steps"])
    assert row["env_steps"] == 3 * 12
    assert row["updates"] > 0
    assert row["states_per_env_step"] > 0
    assert row["states_per_call"] >= 1
    assert row["env_steps_per_second"] > 0
    assert row["network_states_per_second"] > 0


def test_the_benchmark_prints_its_rows(monkeypatch, capsys):
    monkeypatch.setattr(sokoban.os, "cpu_count", lambda: 2)
    before = os.sched_getaffinity(0), torch.get_num_threads()
    assert cli.main(["bench", "sokoban", "--preset", "sokoban", "--json"]) == 0
    rows = json.loads(capsys.readouterr().out)["rows"]
    assert [(row["preset"], row["cores"]) for row in rows] == [("sokoban", 1), ("sokoban", 2)]
    for row in rows:
        check(row)
    assert (os.sched_getaffinity(0), torch.get_num_threads()) == before


def test_both_presets_without_json(monkeypatch, capsys):
    monkeypatch.setattr(sokoban.os, "cpu_count", lambda: 1)
    assert cli.main(["bench", "sokoban"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line.split(",")[0] for line in lines[::3]] == ["paper/sokoban", "sokoban"]
    assert "of the time outside the network" in lines[1]


def test_a_trained_agent_goes_on(sokoban_run, monkeypatch, capsys):
    monkeypatch.setattr(sokoban.os, "cpu_count", lambda: 1)
    assert cli.main(["bench", "sokoban", "--agent", str(sokoban_run), "--json"]) == 0
    (row,) = json.loads(capsys.readouterr().out)["rows"]
    assert row["preset"] == small_sokoban().preset
    assert row["env_steps"] == 40 * 4


def test_what_an_agent_was_made_of_is_not_needed(sokoban_run, tmp_path, monkeypatch):
    monkeypatch.setattr(sokoban.os, "cpu_count", lambda: 1)
    before = shutil.copytree(sokoban_run, tmp_path / "before")
    run(override(small_sokoban(), {"start_from": str(before), "steps": 12}), tmp_path / "agent", pictures=False)
    shutil.rmtree(before)
    assert cli.main(["bench", "sokoban", "--agent", str(tmp_path / "agent"), "--json"]) == 0


def test_other_worlds_are_refused(monkeypatch, capsys):
    monkeypatch.undo()
    assert cli.main(["bench", "sokoban", "--preset", "deep-sea"]) == 2
    assert "deep-sea does not play Sokoban" in capsys.readouterr().err
