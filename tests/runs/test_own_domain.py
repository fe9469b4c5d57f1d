"""A world that does not come with the package trains, goes on, is evaluated, exported and listed like any other."""

import json

import numpy as np
import pytest

import bathysphere
from bathysphere.agents.loading import load_agent
from bathysphere.cli import main
from bathysphere.config.convert import override
from bathysphere.config.run import RunConfig
from bathysphere.domains import register_domain, registry
from bathysphere.errors import BathysphereError
from bathysphere.runs.directory import RunDirectory
from bathysphere.runs.export import export
from tests.domains.chain import Chain, ChainConfig
from tests.runs.subprocesses import contents


@pytest.fixture(autouse=True)
def _registered(monkeypatch):
    """Makes the chain known for the length of a test."""
    monkeypatch.setattr(registry, "_CLASSES", dict(registry._CLASSES))
    register_domain(Chain)


def config(**changes):
    """A chain that planning alone does not see the end of."""
    base = {
        "preset": "mine",
        "steps": 2000,
        "batch": 4,
        "log_every": 100,
        "values": {"network": "mlp", "num_members": 3, "hidden": [8]},
        "search": {"passes": 5, "num_subsampled": 2},
        "optimiser": {"name": "adam", "learning_rate": 0.01},
        "learning": {"steps_per_update": 4},
    }
    return override(override(RunConfig(domain=ChainConfig(length=12)), base), changes)


@pytest.fixture
def trained(tmp_path):
    path = tmp_path / "run"
    return path, bathysphere.train(config(), run_dir=path, stop={"on_solved": True})


def test_it_learns_and_is_evaluated(trained):
    path, result = trained
    assert result["stopped_by"] == "solved"
    assert (path / "pictures" / "learning.png").is_file()
    evaluation = bathysphere.evaluate(path, episodes=5)
    assert (evaluation.count, evaluation.solved) == (5, 5)
    assert evaluation.mean_length == 11


def test_it_is_resumed_bit_for_bit(tmp_path):
    bathysphere.train(config(), run_dir=tmp_path / "whole", pictures=False)
    bathysphere.train(config(), run_dir=tmp_path / "parts", steps=800, pictures=False)
    bathysphere.resume(tmp_path / "parts", steps=2000, pictures=False)
    (whole, rows), (parts, other_rows) = contents(tmp_path / "whole"), contents(tmp_path / "parts")
    assert rows == other_rows
    for name, array in whole.items():
        assert array.tobytes() == parts[name].tobytes(), name
    assert RunDirectory.open(tmp_path / "parts").load_config() == config()


def test_an_agent_acts_and_becomes_a_file(trained, tmp_path):
    path, _ = trained
    file = tmp_path / "chain.safetensors"
    export(path, file)
    for source in (path, file):
        agent = load_agent(source)
        assert isinstance(agent.domain, Chain)
        assert agent.act(np.array([10], np.uint8)) == 0
    assert bathysphere.evaluate(file, episodes=3).solved == 3


def test_verbs_of_the_command_line(trained, capsys):
    path, _ = trained
    assert main(["runs", str(path), "--json"]) == 0
    (listed,) = json.loads(capsys.readouterr().out)["runs"]
    assert (listed["preset"], listed["state"]) == ("mine", "solved")
    assert main(["evaluate", str(path), "--episodes", "3", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["wins"] == 3


def test_without_its_class_it_is_refused_with_a_sentence(trained, monkeypatch):
    path, _ = trained
    monkeypatch.delitem(registry._CLASSES, "chain")
    for use in (bathysphere.resume, load_agent):
        with pytest.raises(BathysphereError, match="There is no domain 'chain'"):
            use(path)
