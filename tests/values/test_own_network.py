"""A value network of one's own: registered by name, trained, saved and loaded like ours."""

import numpy as np
import pytest
import torch

import bathysphere
from bathysphere.domains.base import Categories, Features
from bathysphere.errors import BathysphereError
from bathysphere.values import Batch, Ensemble, OptimiserConfig, ValuesConfig


class Embedded(torch.nn.Module):
    """Adds up an embedding of each cell, then one hidden layer."""

    def __init__(self, observation, config):
        super().__init__()
        self.embedding = torch.nn.EmbeddingBag(observation.num_categories, 8, mode="sum")
        self.rest = torch.nn.Sequential(torch.nn.ReLU(), torch.nn.Linear(8, config.num_members))

    def forward(self, codes):
        return self.rest(self.embedding(codes.flatten(1).long()))


bathysphere.register_network("embedded", Embedded)
BOARD = Categories((3, 4), 5)


def ensemble(seed=0, observation=BOARD, **settings):
    config = ValuesConfig(**{"network": "embedded", "num_members": 3, **settings})
    return Ensemble(config, OptimiserConfig(name="adam", learning_rate=0.01), observation, seed)


def boards(n=6):
    return np.random.default_rng(0).integers(5, size=(n, 3, 4), dtype=np.uint8)


def test_weights_follow_from_the_seed_and_leave_torchs_generator_alone():
    torch.manual_seed(3)
    before = torch.get_rng_state()
    first, second, other = ensemble(0), ensemble(0), ensemble(1)
    assert torch.equal(before, torch.get_rng_state())
    assert first.evaluate(boards()).tolist() == second.evaluate(boards()).tolist()
    assert first.evaluate(boards()).tolist() != other.evaluate(boards()).tolist()


@pytest.mark.parametrize("prior_scale", [0.0, 2.0])
def test_it_learns_and_is_resumed_bit_for_bit(prior_scale):
    one, other = ensemble(prior_scale=prior_scale), ensemble(5, prior_scale=prior_scale)
    batch = Batch(boards(), np.linspace(0, 1, 6, dtype=np.float32)[:, None], np.ones((6, 3), np.bool_))
    first = one.update(batch).loss
    for _ in range(100):
        last = one.update(batch).loss
    assert last < first / 10
    other.load_state_dict(one.state_dict())
    one.update(batch)
    other.update(batch)
    assert one.evaluate(boards()).tolist() == other.evaluate(boards()).tolist()


def test_numbers_arrive_as_numbers():
    bathysphere.register_network("plain", lambda observation, config: torch.nn.Linear(observation.size, 3))
    values = ensemble(network="plain", observation=Features(4)).evaluate(np.ones((5, 4), np.float32))
    assert values.shape == (5, 3)


@pytest.mark.parametrize(
    ("factory", "message"),
    [
        (lambda observation, config: "a network", "returned a str; expected a torch.nn.Module"),
        (lambda observation, config: torch.nn.Linear(12, 3), r"failed on observations \[2, 3, 4\].*whole numbers"),
        (lambda observation, config: torch.nn.Flatten(), r"into \[2, 12\]; expected values \[2, 3\]"),
    ],
)
def test_a_network_that_does_not_fit_is_named(factory, message):
    bathysphere.register_network("unfit", factory)
    with pytest.raises(BathysphereError, match=message):
        ensemble(network="unfit")


def test_names():
    with pytest.raises(BathysphereError, match=r"no network 'embeded'; choose one of linear, .*--import MODULE"):
        ValuesConfig(network="embeded")
    with pytest.raises(BathysphereError, match="a network 'mlp' already"):
        bathysphere.register_network("mlp", Embedded)
    with pytest.raises(BathysphereError, match="expected a function"):
        bathysphere.register_network("mine", 3)
    with pytest.raises(BathysphereError, match="shared_trunk needs layers"):
        ValuesConfig(network="embedded", shared_trunk=True)


class Failing(torch.nn.Module):
    """Says what is no number from its fourth call on, of which the first is a trial."""

    def __init__(self, observation, config):
        super().__init__()
        self.calls, self.rest = 0, Embedded(observation, config)

    def forward(self, codes):
        self.calls += 1
        return self.rest(codes) * (float("nan") if self.calls > 3 else 1.0)


@pytest.mark.parametrize(
    ("preset", "search"),
    [("deep-sea", {}), ("deep-sea-no-planner", {}), ("deep-sea", {"name": "best-first", "max_expansions": 20})],
)
def test_what_is_no_number_ends_a_run_and_names_the_network(preset, search, tmp_path):
    bathysphere.register_network("failing", Failing)
    changes = {"domain": {"size": 5}, "values": {"network": "failing"}, "optimiser": {"name": "adam"}}
    with pytest.raises(BathysphereError, match=r"not finite.*values\.network"):
        bathysphere.train(preset, run_dir=tmp_path / "run", steps=200, pictures=False, search=search, **changes)


def test_a_run_with_it_is_trained_resumed_and_loaded(tmp_path):
    settings = {
        "domain": {"size": 5},
        "values": {"network": "embedded", "num_members": 3},
        "search": {"num_subsampled": None},
        "optimiser": {"name": "adam", "learning_rate": 0.01},
    }
    run = bathysphere.train("deep-sea", run_dir=tmp_path / "run", steps=200, pictures=False, **settings)
    again = run.resume(steps=300, pictures=False)
    assert again.evaluate(3).count == 3
    file = again.export(tmp_path / "own.safetensors")
    assert bathysphere.load_agent(file).values.num_members == 3
