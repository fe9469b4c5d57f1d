import json

from bathysphere import cli
from bathysphere.cli import bench
from bathysphere.domains import domain_names


def test_the_benchmark_prints_its_numbers(monkeypatch, capsys):
    monkeypatch.setattr(bench, "_REPEATS", 1)
    monkeypatch.setattr(bench, "_LEVELS", 1)
    monkeypatch.setattr(bench, "_BATCH", 64)
    assert cli.main(["bench", "domains", "--json"]) == 0
    result = json.loads(capsys.readouterr().out)
    assert set(result["successors_per_second"]) == set(result["oracle_successors_per_second"]) == set(domain_names())
    assert result["sokoban_levels_per_second"] > 0
    for name, speed in result["successors_per_second"].items():
        assert speed > result["oracle_successors_per_second"][name] > 0


def test_without_a_source_checkout_the_twins_are_left_out(monkeypatch, capsys):
    monkeypatch.setattr(bench, "_oracles", lambda: None)
    monkeypatch.setattr(bench, "_rate", lambda call: 1.0)
    monkeypatch.setattr(bench, "_LEVELS", 1)
    assert cli.main(["bench", "domains"]) == 0
    assert "source checkout only" in capsys.readouterr().out
