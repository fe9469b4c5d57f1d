"""What is in a folder of runs, whatever state it is in, and no way out of it."""

import json
import os
import shutil
from itertools import pairwise

import pytest

from bathysphere.errors import BathysphereError
from bathysphere.runs.directory import RunDirectory
from bathysphere.runs.metrics import last_row, read_rows, sample_rows
from bathysphere.studio.folder import RunsFolder, setting_differences


def test_runs_are_described(folder):
    runs = {run.name: run for run in RunsFolder(folder).runs()}
    assert {"sea-0", "sea-1", "neutral"} <= set(runs)
    first = runs["sea-0"]
    assert (first.world, first.preset, first.seed, first.state) == ("deep-sea", "deep-sea", 0, "steps")
    assert first.env_steps >= 1200
    assert first.settings["domain.size"] == 6
    found = dict(setting_differences([runs["sea-0"], runs["neutral"]]))
    assert found["search.risk_coef"][1] == 0.0
    assert "seed" not in found


def test_a_single_run_is_a_folder_of_one(folder):
    alone = RunsFolder(folder / "sea-0")
    assert [run.name for run in alone.runs()] == ["sea-0"]
    assert alone.directory("sea-0").path == (folder / "sea-0").resolve()


def test_damaged_and_half_written_runs_are_shown_as_such(folder, tmp_path):
    for name in ("no-json", "other-version", "no-result", "half-result", "strange-result"):
        shutil.copytree(folder / "sea-0", tmp_path / name)
    (tmp_path / "no-json" / "config.json").write_text("{")
    config = json.loads((tmp_path / "other-version" / "config.json").read_text())
    (tmp_path / "other-version" / "config.json").write_text(json.dumps(config | {"of_the_future": 1}))
    (tmp_path / "no-result" / "result.json").unlink()
    (tmp_path / "half-result" / "result.json").write_text('{"stopped')
    (tmp_path / "strange-result" / "result.json").write_text("[]")
    with (tmp_path / "no-result" / "metrics.jsonl").open("a") as file:
        file.write('{"env_steps": 99')
    states = {run.name: run.state for run in RunsFolder(tmp_path).runs()}
    assert states.pop("no-result") == "unfinished"
    assert set(states.values()) == {"damaged"}
    assert RunsFolder(tmp_path).rows("no-result")[-1]["env_steps"] >= 1200


def test_a_run_that_is_running_says_so_and_by_whom(folder, tmp_path):
    shutil.copytree(folder / "sea-0", tmp_path / "run")
    (tmp_path / "run" / "result.json").unlink()
    directory = RunDirectory.open(tmp_path / "run")
    assert directory.runner() is None
    with directory.lock():
        assert RunsFolder(tmp_path).find("run").state == "running"
        if os.path.exists("/proc/locks"):
            assert directory.runner() == os.getpid()
    assert RunsFolder(tmp_path).find("run").state == "unfinished"


@pytest.mark.parametrize("name", ["..", "../secret", "/etc", "sea-0/../../secret", "way-out", "none", "a\0b"])
def test_no_name_leads_out_of_the_folder(folder, tmp_path, name):
    runs, secret = tmp_path / "runs", tmp_path / "secret"
    shutil.copytree(folder / "sea-0", runs / "sea-0")
    shutil.copytree(folder / "sea-0", secret)
    (runs / "way-out").symlink_to(secret)
    with pytest.raises(BathysphereError):
        RunsFolder(runs).directory(name)


def test_rows_are_read_again_when_they_change(folder, tmp_path):
    shutil.copytree(folder / "sea-0", tmp_path / "run")
    runs = RunsFolder(tmp_path)
    before = runs.rows("run")
    assert runs.rows("run") is before
    with (tmp_path / "run" / "metrics.jsonl").open("a") as file:
        file.write(json.dumps(before[-1] | {"env_steps": 10**6}) + "\n")
    assert runs.rows("run")[-1]["env_steps"] == 10**6


@pytest.mark.parametrize("count", [0, 1, 5, 399, 1000, 20_000])
def test_a_sample_of_rows_has_first_and_last_and_keeps_their_order(tmp_path, count):
    file = tmp_path / "metrics.jsonl"
    padding = "x" * 300
    with file.open("w") as opened:
        for number in range(count):
            opened.write(json.dumps({"env_steps": number, "padding": padding}) + "\n")
        opened.write('{"env_st')  # is being written
    steps = [row["env_steps"] for row in sample_rows(file, 400)]
    assert steps == sorted(set(steps))
    assert len(steps) <= 402
    if count:
        assert steps[0] == 0
        assert last_row(file)["env_steps"] == count - 1
        assert steps[-1] >= count - 1 - count // 300
    if count <= 399:
        assert steps == [row["env_steps"] for row in read_rows(file)]
    gaps = [b - a for a, b in pairwise(steps)]
    assert not gaps or max(gaps) <= count // 200 + 2


def test_there_may_be_no_rows_at_all(tmp_path):
    assert sample_rows(tmp_path / "metrics.jsonl", 10) == []
    assert last_row(tmp_path / "metrics.jsonl") is None
    (tmp_path / "metrics.jsonl").write_text("\n[]\nnonsense\n")
    assert sample_rows(tmp_path / "metrics.jsonl", 10) == []
    assert last_row(tmp_path / "metrics.jsonl") is None
