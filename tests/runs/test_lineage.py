"""Runs that begin with the weights of another agent."""

import json
import shutil

import pytest

from bathysphere.agents import agent_file
from bathysphere.agents.loading import load_trained
from bathysphere.config.convert import override
from bathysphere.errors import BathysphereError
from bathysphere.runs.build import make_trainer
from bathysphere.runs.export import export
from bathysphere.runs.lineage import Lineage
from bathysphere.runs.runner import resume, run
from tests.runs.small import small_config, small_sokoban


@pytest.fixture(scope="module")
def first(tmp_path_factory):
    path = tmp_path_factory.mktemp("first") / "run"
    run(small_config(), path, pictures=False)
    return path


def test_a_run_begins_with_the_weights_it_is_given(first, tmp_path):
    file = tmp_path / "first.safetensors"
    export(first, file)
    for agent in (first, file):
        config = small_config(seed=7, start_from=str(agent))
        begun = make_trainer(config).values.weights()
        given = load_trained(agent).values.weights()
        assert all((begun[name] == given[name]).all() for name in given)
    random = make_trainer(small_config(seed=7)).values.weights()
    assert any((random[name] != begun[name]).any() for name in random)


def test_what_was_learnt_helps(first, tmp_path):
    """A world that others win by chance at first is won from the start."""
    config = small_config(seed=7, steps=48)
    anew = run(config, tmp_path / "anew", pictures=False)["wins"]
    assert run(override(config, {"start_from": str(first)}), tmp_path / "second", pictures=False)["wins"] >= anew + 4


def test_the_card_names_all_commands(first, tmp_path):
    second, moved = tmp_path / "second", tmp_path / "moved"
    shutil.copytree(first, moved)
    run(small_config(seed=7, start_from=str(moved), steps=100), second, pictures=False)
    shutil.rmtree(moved)
    resume(second, config=small_config(seed=7, start_from=str(moved), steps=200), pictures=False)  # it is not needed
    third = tmp_path / "third"
    run(small_config(seed=8, start_from=str(second), steps=100), third, pictures=False)
    export(third, tmp_path / "third.safetensors")
    config, _, card, *_ = agent_file.read(tmp_path / "third.safetensors")
    assert config.start_from is None  # a folder of this machine
    one, two, three = card.command.split(", then ")
    assert one == Lineage.of(first).command
    assert "--start-from" not in one
    assert "--seed 7 --steps 200 --domain.size 6 --start-from RUN" in two.replace("--log-every 100 ", "")
    assert "--seed 8 --steps 100" in three
    steps = [Lineage.of(agent).env_steps for agent in (first, second, third)]
    assert steps == [1200, 1400, 1500]
    assert card.env_steps == 1500
    assert card.seconds == Lineage.of(third).seconds > json.loads((third / "origin.json").read_text())["seconds"]


def test_agents_of_other_worlds_or_networks_are_refused(first, tmp_path):
    with pytest.raises(BathysphereError, match="with boards of the same size"):
        make_trainer(small_config(domain={"size": 7}, start_from=str(first)))
    with pytest.raises(BathysphereError, match="its network is another one"):
        make_trainer(small_config(values={"num_members": 19}, start_from=str(first)))
    with pytest.raises(BathysphereError, match="There is no agent 'nowhere'"):
        make_trainer(small_config(start_from="nowhere"))
    towers = {"network": "cnn", "policy": False, "num_towers": 1, "num_members": 1, "precision": "float32"}
    with pytest.raises(BathysphereError, match="leave one out"):
        override(small_sokoban(), {"values": towers, "start_from": "a"})
