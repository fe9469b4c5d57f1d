"""Benchmarks still fit the package: each starts and explains itself, which builds all it compares."""

import runpy
import sys
from pathlib import Path

import pytest

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
