"""Runs that are built on the values of others."""

import shutil

import numpy as np
import pytest

from bathysphere import load_agent
from bathysphere.config.convert import config_hash, differences, override
from bathysphere.config.presets import find_preset
from bathysphere.errors import BathysphereError
from bathysphere.runs.build import make_trainer
from bathysphere.runs.directory import RunDirectory
from bathysphere.runs.runner import resume, run
from bathysphere.storage.checkpoint import CheckpointStore

SMALL = {
    "domain": {"generator": {"height": 6, "width": 6, "num_boxes": 1}, "num_boards": 2, "max_steps": 15},
    "values": {"conv_layers": 1, "conv_channels": 3, "dense": 4},
    "learning": {"min_episodes": 3, "steps_per_update": 10, "replay": {"capacity": 100}},
    "optimiser": {"name": "adam", "learning_rate": 1e-3, "eps": 1e-8},
    "batch": 4,
    "steps": 400,
    "log_every": 100,
}


def tower_config(**changes):
    return override(override(find_preset("paper/sokoban-tower"), SMALL), changes)


def transfer_config(towers, **changes):
    fresh = {"domain": {"num_boards": None}, "values": {"num_towers": len(towers)}, "stop": {"win_rate": None}}
    return override(tower_config(towers=[str(tower) for tower in towers], **fresh), changes)


@pytest.fixture(scope="module")
def towers(tmp_path_factory):
    """Two runs whose values are trained. No test changes them."""
    parent = tmp_path_factory.mktemp("towers")
    for seed in (0, 1):
        run(tower_config(seed=seed, domain={"board_seed": seed}), parent / str(seed), pictures=False)
    return [parent / "0", parent / "1"]


def weights(path):
    directory = RunDirectory.open(path)
    store = CheckpointStore(directory.checkpoints, config_hash(directory.load_config()))
    return store.read_weights(store.paths()[-1])


def test_a_run_learns_on_top_of_towers_that_it_keeps(towers, tmp_path):
    path = tmp_path / "transfer"
    result = run(transfer_config(towers), path, pictures=False)
    assert result["updates"] > 10
    learnt = weights(path)
    for i, tower in enumerate(towers):
        for name, array in weights(tower).items():
            if name.startswith("values.network."):
                kept = learnt[name.replace("values.network.", f"values.network.towers.{i}.")]
                assert kept.tobytes() == array.tobytes()
    sum_of_towers = learnt["values.network.aggregator.layers.0.weight"]
    assert not np.array_equal(sum_of_towers, np.full_like(sum_of_towers, 0.5))


def test_once_begun_it_needs_its_towers_no_more(towers, tmp_path):
    copies = [shutil.copytree(tower, tmp_path / tower.name) for tower in towers]
    one, other = tmp_path / "one", tmp_path / "other"
    run(transfer_config(towers), one, pictures=False)
    run(transfer_config(copies, steps=200), other, pictures=False)
    for copy in copies:
        shutil.rmtree(copy)
    resume(other, config=transfer_config(copies), pictures=False)
    first, second = weights(one), weights(other)
    assert all(first[name].tobytes() == second[name].tobytes() for name in first)
    state = load_agent(other).domain.initial(1, np.random.default_rng(0))[0]
    assert 0 <= load_agent(other).act(state) < 4


def test_as_it_is_a_single_tower_is_itself(towers, tmp_path):
    trainer = make_trainer(transfer_config(towers[:1]))
    states = trainer.domain.initial(20, np.random.default_rng(0))
    own = load_agent(towers[0]).values
    shown = trainer.domain.observe(states)
    np.testing.assert_allclose(trainer.values.evaluate(shown), own.evaluate(shown), rtol=1e-5, atol=1e-6)


def test_a_run_that_ends_with_its_first_episodes_has_learnt_nothing(towers, tmp_path):
    path = tmp_path / "as-it-is"
    config = transfer_config(towers[:1], stop={"episodes": 1}, learning={"min_episodes": 4})
    result = run(config, path, pictures=False)
    assert result["updates"] == 0
    assert weights(path)["values.network.aggregator.layers.0.weight"].tolist() == [[[1.0]]]


class TestRefusals:
    def refuse(self, config, sentence):
        with pytest.raises(BathysphereError, match=sentence):
            make_trainer(config)

    def test_another_network(self, towers):
        self.refuse(
            transfer_config(towers, values={"conv_layers": 2, "dense": 5}),
            r"0 cannot be a tower here: it has values.conv_layers 1 instead of 2, values.dense 4 instead of 5\.",
        )

    def test_other_boards(self, towers):
        larger = {"domain": {"generator": {"height": 7, "width": 7}}}
        self.refuse(transfer_config(towers, **larger), r"it sees Categories\(shape=\(6, 6\).*boards of the same size")

    def test_an_ensemble(self, towers, tmp_path):
        run(tower_config(values={"num_members": 3}, steps=4), tmp_path / "three", pictures=False)
        self.refuse(transfer_config([tmp_path / "three"]), "values.num_members 3 instead of 1")

    def test_towers_on_towers(self, towers, tmp_path):
        run(transfer_config(towers, steps=4), tmp_path / "two", pictures=False)
        self.refuse(transfer_config([tmp_path / "two"]), "values.num_towers 2 instead of 0")

    def test_none_and_too_few(self, towers):
        none = override(transfer_config(towers), {"towers": []})
        self.refuse(none, r"values.num_towers is 2, but no runs are named .* --towers RUN")
        with pytest.raises(BathysphereError, match=r"towers names 2 runs, but values.num_towers is 3"):
            transfer_config(towers, values={"num_towers": 3})

    def test_no_such_run(self, towers, tmp_path):
        self.refuse(transfer_config([towers[0], tmp_path / "nowhere"]), "There is no agent")


def test_where_towers_lay_does_not_decide_a_run(towers, tmp_path):
    one, other = transfer_config(towers), transfer_config([tmp_path / "a", tmp_path / "b"])
    assert differences(one, other) == []
    assert config_hash(one) == config_hash(other)
    assert config_hash(one) != config_hash(override(one, {"values": {"aggregator": "hidden"}}))
