"""Benchmarks still fit the package: each starts and explains itself, which builds all it compares."""

import runpy
import sys
from pathlib import Path

import pytest
from benchmarks.hostile_files import RUNS
from benchmarks.soak import verdict

import bathysphere

BENCHMARKS = sorted((Path(__file__).parents[1] / "benchmarks").glob("[!_]*.py"))  # _x.py: shared by scripts


@pytest.mark.parametrize("path", BENCHMARKS, ids=lambda path: path.stem)
def test_every_benchmark_can_be_loaded(path):
    assert "main" in runpy.run_path(str(path))


def test_the_ablation_explains_itself_and_repeats_nothing(monkeypatch, capsys):
    path = next(path for path in BENCHMARKS if path.stem == "sokoban_ablation")
    variants = runpy.run_path(str(path))["VARIANTS"]
    assert len(set(map(repr, variants.values()))) == len(variants)  # none repeats another
    monkeypatch.setattr(sys, "argv", [path.name, "--help"])
    with pytest.raises(SystemExit, match="0"):
        runpy.run_path(str(path), run_name="__main__")
    assert "one field changed at a time" in capsys.readouterr().out


@pytest.mark.parametrize("name", RUNS)
def test_runs_that_are_tormented_can_begin(name, tmp_path):
    preset, settings = RUNS[name]
    run = bathysphere.train(preset, run_dir=tmp_path / "run", pictures=False, **{**settings, "steps": 8})
    assert run["env_steps"] >= 8


def samples(number, every, updates):
    """What a soak sees of a run: a second of the processor and `every` steps between two samples."""
    return [
        {
            "processor": float(i + 1),
            "env_steps": every * (i + 1),
            "updates": updates and updates + i,
            "resident": 10**8,
            "rows": 10**4,
            "files": 10**6,
        }
        for i in range(number)
    ]


def test_a_soak_judges_a_run_from_its_first_update_on():
    playing, learning = samples(12, 300, 0), samples(12, 100, 5)
    for one in learning:
        one["processor"], one["env_steps"] = one["processor"] + 12, one["env_steps"] + 3600
    told = verdict(playing + learning)
    assert told["flat"]
    assert told["learning"] == 12
    assert told["speed_ratio"] == pytest.approx(1.0)
    assert not verdict(playing)["flat"]  # nothing was seen of what is to be judged


def test_a_soak_counts_processor_time():
    done, idle = samples(30, 100, 5), samples(40, 100, 5)[30:]
    for one in idle:  # the machine is busy, and what little is done is done slowly
        one["processor"], one["env_steps"] = 30 + (one["processor"] - 30) / 10, 3000
    assert verdict(done + idle)["flat"]


@pytest.mark.parametrize(("what", "growth"), [("resident", 0.03), ("files", 0.03), ("processor", 0.2)])
def test_a_soak_tells_of_what_grows(what, growth):
    growing = samples(30, 100, 5)
    assert verdict(growing)["flat"]
    for i, one in enumerate(growing):
        one[what] *= 1 + growth * i
    assert not verdict(growing)["flat"]
