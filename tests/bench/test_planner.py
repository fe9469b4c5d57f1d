import json

import pytest

from bathysphere import cli
from bathysphere.bench import planner, planner_shares, timing


@pytest.fixture(autouse=True)
def quick(monkeypatch):
    monkeypatch.setattr(planner, "REPEATS", 1)
    monkeypatch.setattr(planner, "WINDOW", 0.05)
    monkeypatch.setattr(planner, "ORACLE_SECONDS", 0.05)
    monkeypatch.setattr(planner_shares, "_STEPS", 2)
    small = tuple(lambda make=make: make(batch=8) for make in planner.TASKS)
    monkeypatch.setattr(planner, "TASKS", small)


def test_the_benchmark_prints_its_rows(capsys):
    assert cli.main(["bench", "planner", "--json"]) == 0
    rows = json.loads(capsys.readouterr().out)["rows"]
    assert [row["work"] for row in rows] == ["deep-sea", "toy-montezuma", "sokoban"]
    for row in rows:
        assert row["batch"] == 8
        assert row["ratio"] == row["env_steps_per_second"] / row["oracle_env_steps_per_second"] > 0
        assert set(row["share"]) == {"select", "model", "network", "backup", "other"}
        assert sum(row["share"].values()) == pytest.approx(1.0)
        assert min(row["share"].values()) >= 0.0
        assert row["share"]["model"] > 0.0
        assert row["share"]["network"] > 0.0
        assert row["bytes_per_episode"] > 10_000


def test_without_a_source_checkout_the_twin_is_left_out(monkeypatch, capsys, tmp_path):
    monkeypatch.setattr(timing, "TWINS", tmp_path)
    assert cli.main(["bench", "planner"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert "deep-sea" in lines[1]
    assert " - " in lines[1]
    assert lines[-1] == "-: the plain-Python twin comes with the source checkout only, so it was not measured."
