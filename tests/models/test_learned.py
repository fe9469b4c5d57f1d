import json
import pickle
from dataclasses import replace

import numpy as np
import pytest
from safetensors import safe_open
from safetensors.numpy import load, save

import bathysphere
from bathysphere.agents.loading import make_model
from bathysphere.agents.model_evaluation import evaluate_model
from bathysphere.config.convert import config_hash, override, to_dict
from bathysphere.config.presets import find_preset
from bathysphere.domains import DeepSea, Sokoban, SokobanConfig
from bathysphere.domains.sokoban import SHAPED_REWARDS, GeneratorConfig, Rewards
from bathysphere.errors import BathysphereError
from bathysphere.models.config import ModelConfig
from bathysphere.models.learned import LearnedModel, load_model, weights_of
from bathysphere.models.model_file import BoardSpec, ModelFile, read_model, write_model
from bathysphere.models.network import build_network
from bathysphere.testing import check_batching, check_purity, check_successors


def make_domain(height=7, width=7, **options):
    return Sokoban(SokobanConfig(generator=GeneratorConfig(height=height, width=width, num_boxes=2), **options))


def make_file(domain=None, **options):
    config = ModelConfig(channels=8, **options)
    network = build_network(config, 7, 4, np.random.default_rng(0))
    return ModelFile(config, BoardSpec.of(domain or make_domain()), {"about": "nothing"}, weights_of(network))


def states(domain, n=12):
    return domain.initial(n, np.random.default_rng(0))


class Pretending:
    """A domain whose rules are the model's, for the conformance checks."""

    def __init__(self, domain, model):
        self.successors = model.successors
        for name in ("action_names", "state_size", "observe", "render", "text"):
            setattr(self, name, getattr(domain, name))


@pytest.mark.parametrize("options", [{}, {"cells": "sigmoid"}, {"kind": "paper", "cells": "sigmoid"}])
def test_it_keeps_the_promises_of_a_model(options):
    domain = make_domain()
    pretending = Pretending(domain, LearnedModel(make_file(**options), domain))
    check_successors(pretending, states(domain))
    check_purity(pretending, states(domain))
    check_batching(pretending, states(domain))


def test_large_batches_are_cut_up_and_small_ones_are_fine():
    domain = make_domain()
    model = LearnedModel(make_file(), domain)
    some = states(domain, 3)
    many = model.successors(np.tile(some, (400, 1)))
    few = model.successors(some)
    assert many.states.shape == (1200, 4, 49)
    assert all((np.tile(b, (400, *[1] * (b.ndim - 1))) == a).all() for a, b in zip(many, few, strict=True))


def test_rewards_are_the_domains():
    domain = make_domain(rewards=Rewards(step=-0.5, finished=7.0))
    file = make_file(domain)
    file.weights["heads.bias"][-1] = -60.0  # everything looks solved
    file.weights["heads.weight"][-1] = 0.0
    out = LearnedModel(file, domain).successors(states(domain))
    assert out.terminal.all()
    assert out.solved.all()
    assert (out.rewards == 6.5).all()
    file.weights["heads.bias"][-1] = 60.0
    out = LearnedModel(file, domain).successors(states(domain))
    assert not out.terminal.any()
    assert (out.rewards == -0.5).all()


def test_unknown_codes_are_walls():
    domain = make_domain()
    model, some = LearnedModel(make_file(), domain), states(domain)
    strange, walled = some.copy(), some.copy()
    strange[:, 24], walled[:, 24] = 200, 0
    assert (model.successors(strange).states == model.successors(walled).states).all()


def test_it_travels_to_other_processes():
    domain = make_domain()
    model = LearnedModel(make_file(), domain)
    content = pickle.dumps(model)
    assert pickle.dumps(model) == content  # so that it is not sent twice
    other = pickle.loads(content)
    assert pickle.dumps(other) == content
    assert all((a == b).all() for a, b in zip(*(m.successors(states(domain)) for m in (model, other)), strict=True))


def test_files_hold_half_precision_and_the_card(tmp_path):
    file, path = make_file(), tmp_path / "a.safetensors"
    write_model(path, file)
    read = read_model(path)
    assert (read.config, read.world, read.card) == (file.config, file.world, file.card)
    assert {array.dtype for array in load(path.read_bytes()).values()} == {np.dtype(np.float16)}
    for name, array in read.weights.items():
        assert array.dtype == np.float32
        assert (array == file.weights[name].astype(np.float16)).all()


def _rewrite(path, change):
    """Writes the file again with another header."""
    with safe_open(path, framework="numpy") as file:
        metadata = file.metadata()
    header = json.loads(metadata["bathysphere.model"])
    change(header)
    path.write_bytes(save(load(path.read_bytes()), metadata={**metadata, "bathysphere.model": json.dumps(header)}))


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        (
            lambda h: h["world"].update(height=9),
            r"predicts boards of 9x7 cells, but this world's have 7x7.*model train",
        ),
        (lambda h: h["world"].update(actions=["up", "down", "left", "right"]), "the actions up, down, left, right of"),
        (lambda h: h["world"].update(num_codes=8), "predicts 8 cell codes"),
        (lambda h: h["world"].update(name="chess"), "of chess; this world has 7"),
        (lambda h: h.update(format=2), r"has format 2 .*this version reads format 1"),
        (lambda h: h["config"].update(channels=9), "a local network of 9 channels has"),
        (lambda h: h["config"].update(kind="deep"), "should be one of local, paper; got 'deep'"),
        (lambda h: h["config"].update(depth=3), "There is no field 'config.depth'"),
        (lambda h: h.update(weights="0" * 64), "is damaged: its weights are not what was saved"),
        (lambda h: h.pop("world"), "The field 'world' is missing"),
    ],
)
def test_what_does_not_fit_is_refused_with_a_sentence(change, sentence, tmp_path):
    path = tmp_path / "a.safetensors"
    write_model(path, make_file())
    _rewrite(path, change)
    with pytest.raises(BathysphereError, match=sentence):
        load_model(path, make_domain())


def test_other_files_are_refused_with_a_sentence(tmp_path):
    path = tmp_path / "a.safetensors"
    for content, sentence in (
        (b"nonsense", "is not a world model, or it is damaged"),
        (save({"a": np.zeros(2)}), "but not a world model"),
    ):
        path.write_bytes(content)
        with pytest.raises(BathysphereError, match=sentence):
            read_model(path)
    with pytest.raises(BathysphereError, match=r"There is no model nowhere\. Give a model file, or"):
        read_model("nowhere")
    with pytest.raises(BathysphereError, match=r"is called something\.safetensors"):
        write_model(tmp_path / "a.bin", make_file())


def test_a_card_that_says_nothing_is_refused_with_a_sentence(tmp_path):
    write_model(tmp_path / "a.safetensors", make_file())
    with pytest.raises(BathysphereError, match="does not say how many boxes"):
        evaluate_model(tmp_path / "a.safetensors")


def test_other_worlds_are_refused_with_a_sentence():
    with pytest.raises(BathysphereError, match="this world is deep-sea"):
        LearnedModel(make_file(), DeepSea())
    with pytest.raises(BathysphereError, match="also pays for single boxes"):
        LearnedModel(make_file(), make_domain(rewards=SHAPED_REWARDS))


# In runs.


def small_run(model, **changes):
    size = {"height": 7, "width": 7, "num_boxes": 2}
    changes = {"steps": 60, "batch": 4, "log_every": 20, "search": {"passes": 3, "max_steps": 8}, **changes}
    base = override(find_preset("sokoban"), {"domain": {"generator": size}, "values": {"conv_channels": 4}, **changes})
    return replace(base, model=str(model))


@pytest.fixture
def model_path(tmp_path):
    path = tmp_path / "model.safetensors"
    write_model(path, make_file())
    return path


def test_a_run_keeps_a_copy_of_its_model_and_counts_its_errors(model_path, tmp_path):
    config, run_dir = small_run(model_path), tmp_path / "run"
    result = bathysphere.train(config, run_dir=run_dir, pictures=False)
    assert result["model_wrong_state"] > 10  # it knows nothing
    assert {"model_wrong_reward", "model_false_end", "model_missed_end"} <= result.keys()
    last = json.loads((run_dir / "metrics.jsonl").read_text().splitlines()[-1])
    assert 0 < last["model_wrong_state"] <= result["model_wrong_state"]
    assert (run_dir / "model.safetensors").read_bytes() == model_path.read_bytes()
    model_path.unlink()
    agent = bathysphere.load_agent(run_dir)
    assert isinstance(agent.model, LearnedModel)
    assert 0 <= agent.act(states(agent.domain, 1)[0]) < 4


def test_a_model_that_does_not_fit_a_run_leaves_nothing_behind(model_path, tmp_path):
    with pytest.raises(BathysphereError, match="There is no model nowhere"):
        bathysphere.train(small_run("nowhere"), run_dir=tmp_path / "run", pictures=False)
    assert not (tmp_path / "run").exists()
    with pytest.raises(BathysphereError, match="this world is deep-sea"):
        make_model(replace(find_preset("deep-sea"), model=str(model_path)), DeepSea())


def test_runs_without_a_model_are_the_same_as_before_there_were_models():
    config = find_preset("deep-sea")
    assert to_dict(config)["model"] is None
    assert config_hash(replace(config, model="a")) != config_hash(config)
    assert make_model(config, DeepSea()) is None
