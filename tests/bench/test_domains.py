import json
from dataclasses import dataclass

import pytest

from bathysphere import cli
from bathysphere.bench import domains, timing
from bathysphere.domains import DeepSea, DeepSeaConfig, registry


@pytest.fixture(autouse=True)
def quick(monkeypatch):
    monkeypatch.setattr(domains, "REPEATS", 1)
    monkeypatch.setattr(domains, "LEVELS", 1)
    monkeypatch.setattr(domains, "BATCH", 64)


@dataclass(frozen=True)
class LakeConfig(DeepSeaConfig):
    """As Deep-sea's, but of another type."""


class Lake(DeepSea):
    """A domain without a twin."""

    name = "lake"
    Config = LakeConfig


@dataclass(frozen=True)
class OpenConfig:
    """Has no default."""

    size: int


class Open(Lake):
    """A domain that has to be told its size."""

    name = "open"
    Config = OpenConfig


def test_the_benchmark_prints_its_numbers(capsys):
    assert cli.main(["bench", "domains", "--json"]) == 0
    result = json.loads(capsys.readouterr().out)
    built_in = {"deep-sea", "toy-montezuma", "sokoban"}
    assert built_in <= set(result["successors_per_second"])
    assert set(result["oracle_successors_per_second"]) == built_in
    assert result["sokoban_levels_per_second"] > 0
    speeds = (*result["successors_per_second"].values(), *result["oracle_successors_per_second"].values())
    assert all(speed > 0 for speed in speeds)


def test_a_registered_domain_needs_no_twin(monkeypatch, capsys):
    known = {**registry._CLASSES, "lake": Lake, "open": Open}
    monkeypatch.setattr(registry, "_CLASSES", known)
    monkeypatch.setattr(domains, "domain_names", lambda: ("deep-sea", "lake", "open"))
    monkeypatch.setattr(domains, "rate", lambda call, repeats: call() and 1.0)
    assert cli.main(["bench", "domains"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert "Python twin" in lines[1]
    assert lines[2].split() == ["lake", f"{64 * 2:,}"]
    assert lines[-1] == "Not measured, because their settings have no defaults: open."


def test_without_a_source_checkout_the_twins_are_left_out(monkeypatch, capsys, tmp_path):
    monkeypatch.setattr(timing, "TWINS", tmp_path)
    monkeypatch.setattr(domains, "rate", lambda call, repeats: 1.0)
    assert cli.main(["bench", "domains"]) == 0
    out = capsys.readouterr().out
    assert "source checkout only" in out
    assert "Python twin " not in out


def test_rates_are_calls_per_second(monkeypatch):
    clock = [0.0]

    def call():
        clock[0] += 0.002

    monkeypatch.setattr(timing.time, "perf_counter", lambda: clock[0])
    assert timing.seconds(call, 3) == pytest.approx(0.006)
    assert timing.rate(call, repeats=3) == pytest.approx(500)
