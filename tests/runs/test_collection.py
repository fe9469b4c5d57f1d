"""All runs of a folder together."""

import subprocess
import sys

import pytest

import bathysphere
from bathysphere.errors import BathysphereError

SMALL = {"domain": {"size": 5}, "log_every": 50, "steps": 100, "pictures": False}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    path = tmp_path_factory.mktemp("runs")
    for seed in (0, 1):
        bathysphere.train("deep-sea", run_dir=path / f"mine-{seed}", seed=seed, **SMALL)
    bathysphere.train("paper/deep-sea", run_dir=path / "study" / "first", **SMALL)
    return path


def test_runs_by_name_number_and_turn(folder):
    runs = bathysphere.runs(str(folder))
    assert runs.names == ["mine-0", "mine-1", "study/first"]
    assert len(runs) == 3
    assert [run["seed"] for run in runs] == [0, 1, 0]
    assert runs["mine-1"] == runs[1] == bathysphere.load_run(folder / "mine-1")
    with pytest.raises(BathysphereError, match=r"no run 'mine-2' in .*Did you mean"):
        runs["mine-2"]


def test_one_frame_of_all(folder):
    curves = bathysphere.runs(folder).curves()
    assert list(curves.columns[:3]) == ["run", "preset", "seed"]
    assert set(curves["run"]) == {"mine-0", "mine-1", "study/first"}
    assert set(curves[curves["run"] == "study/first"]["preset"]) == {"paper/deep-sea"}
    assert curves.groupby("run")["env_steps"].max().min() >= 100


def test_a_table_to_print(folder):
    header, *lines = str(bathysphere.runs(folder)).splitlines()
    assert header.split("  ")[0].strip() == "run"
    assert len({len(line) for line in (header, *lines)}) == 1
    assert lines[2].split()[:4] == ["study/first", "paper/deep-sea", "0", "steps"]


def test_a_folder_without_runs_and_no_folder(tmp_path):
    assert "no runs" in repr(bathysphere.runs(tmp_path))
    with pytest.raises(BathysphereError, match="Train something first"):
        bathysphere.runs(tmp_path / "nowhere")


def test_a_damaged_run_does_not_hide_the_others(folder, tmp_path):
    (tmp_path / "bad").mkdir()
    (tmp_path / "bad" / "config.json").write_text("{")
    (run,) = bathysphere.runs(tmp_path)
    assert run.state == "damaged"
    assert "damaged" in str(bathysphere.runs(tmp_path))


def test_the_name_works_before_and_after_the_package_is_imported(folder):
    check = f"import bathysphere; a = bathysphere.runs({str(folder)!r}).names; import bathysphere.runs.api; "
    check += f"assert a == bathysphere.runs({str(folder)!r}).names"
    subprocess.run([sys.executable, "-c", check], check=True)
