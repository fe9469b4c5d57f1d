import numpy as np
import pytest

from bathysphere.domains.base import Categories
from bathysphere.errors import BathysphereError
from bathysphere.values import Batch, Ensemble, OptimiserConfig, ValuesConfig
from bathysphere.values.towers import HIDDEN_UNITS, with_towers

BOARD = Categories((4, 5), 3)
TOWER = ValuesConfig("cnn", num_members=1, conv_layers=2, conv_channels=3, dense=5)
ADAM = OptimiserConfig(name="adam", learning_rate=0.02, eps=1e-8)


def make_towers(count, config=TOWER, observation=BOARD):
    return [Ensemble(config, ADAM, observation, seed=100 + i) for i in range(count)]


def stacked(towers, aggregator="linear", optimiser=ADAM):
    """An ensemble on top of trained towers."""
    config = ValuesConfig(**{**vars(TOWER), "num_towers": len(towers), "aggregator": aggregator})
    values = Ensemble(config, optimiser, BOARD, seed=7)
    values.load_weights(with_towers(values.weights(), [tower.weights() for tower in towers]))
    return values


def boards(*shape, seed=0):
    return np.random.default_rng(seed).integers(3, size=(*shape, 4, 5)).astype(np.uint8)


def batches(num_updates, size, target, seed=0):
    observations = boards(num_updates, size, seed=seed)
    targets = np.stack([target(batch) for batch in observations])[..., None].astype(np.float32)
    return Batch(observations, targets, np.ones((num_updates, size, 1), np.bool_))


@pytest.mark.parametrize("count", [1, 2, 3])
def test_a_weighted_sum_starts_as_the_mean_of_the_towers(count):
    towers, x = make_towers(count), boards(30)
    mean = np.mean([tower.evaluate(x) for tower in towers], axis=0)
    np.testing.assert_allclose(stacked(towers).evaluate(x), mean, rtol=1e-5, atol=1e-6)


def test_a_hidden_layer_reads_nothing_but_the_values_of_the_towers():
    towers, x = make_towers(3), boards(30)
    values = stacked(towers, "hidden")
    inputs = np.concatenate([tower.evaluate(x) for tower in towers], axis=1)
    own = {name: array for name, array in values.weights().items() if ".towers." not in name}
    first, bias, last, last_bias = (
        own[f"network.aggregator.layers.{layer}.{kind}"][0] for layer in (0, 1) for kind in ("weight", "bias")
    )
    assert first.shape == (HIDDEN_UNITS, 3)
    expected = np.maximum(inputs @ first.T + bias.T, 0) @ last.T + last_bias.T
    np.testing.assert_allclose(values.evaluate(x), expected, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("aggregator", ["linear", "hidden"])
@pytest.mark.parametrize("name", ["tf_rmsprop", "adam", "sgd", "rmsprop"])
@pytest.mark.parametrize("averaging", [0.0, 0.9])
def test_towers_stay_bit_for_bit_as_they_were_while_the_aggregator_learns(aggregator, name, averaging):
    towers = make_towers(2)
    optimiser = OptimiserConfig(name=name, learning_rate=0.01, l2=0.1, averaging=averaging)
    values = stacked(towers, aggregator, optimiser)
    before = values.weights()
    values.update_many(batches(20, 8, lambda x: np.full(len(x), 5.0)))
    after = values.weights()
    for name_, array in after.items():
        is_frozen = name_.startswith("network.towers.")
        assert (array.tobytes() == before[name_].tobytes()) == is_frozen, name_
    for i, tower in enumerate(towers):
        for name_, array in tower.weights().items():
            planted = after[f"network.towers.{i}.{name_.removeprefix('network.')}"]
            assert planted.tobytes() == array.tobytes()


def test_the_aggregator_learns_what_towers_can_tell():
    towers = make_towers(2)
    values = stacked(towers, optimiser=OptimiserConfig(name="adam", learning_rate=0.1, eps=1e-8))

    def target(x):
        first, second = (tower.evaluate(x)[:, 0] for tower in towers)
        return 2 * first - second + 3

    assert values.update_many(batches(1, 32, target, seed=1)).loss > 5
    values.update_many(batches(200, 32, target, seed=2))
    assert values.update_many(batches(5, 32, target, seed=3)).loss < 0.05


def test_l2_is_of_the_aggregator_alone():
    towers = make_towers(2)
    plain, bound = (stacked(towers, "linear", OptimiserConfig(name="sgd", l2=l2)) for l2 in (0.0, 1.0))
    batch = batches(1, 8, lambda x: np.zeros(len(x)))
    # Two tensors, weights 1/2 and 1/2 and a bias of 0: the mean of half their squared norms is 1/8.
    assert bound.update_many(batch).loss == pytest.approx(plain.update_many(batch).loss + 1 / 8, rel=1e-5)


def test_saved_and_restored_it_goes_on_bit_for_bit():
    values = stacked(make_towers(3), "hidden")
    values.update_many(batches(5, 8, lambda x: np.ones(len(x))))
    other = Ensemble(ValuesConfig(**{**vars(TOWER), "num_towers": 3, "aggregator": "hidden"}), ADAM, BOARD, seed=8)
    other.load_state_dict(values.state_dict())  # towers included: they are not needed again
    for ensemble in (values, other):
        ensemble.update_many(batches(5, 8, lambda x: np.ones(len(x)), seed=1))
    assert values.evaluate(boards(9)).tobytes() == other.evaluate(boards(9)).tobytes()


def test_towers_of_another_shape_are_refused():
    values = stacked(make_towers(2))
    wide = Ensemble(ValuesConfig(**{**vars(TOWER), "dense": 6}), ADAM, BOARD, seed=0)
    deep = Ensemble(ValuesConfig(**{**vars(TOWER), "conv_layers": 3}), ADAM, BOARD, seed=0)
    for misfit in (wide, deep):
        with pytest.raises(BathysphereError, match=r"network\.towers\.0"):
            values.load_weights(with_towers(values.weights(), [misfit.weights()]))


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"num_towers": -1}, "must not be negative"),
        ({"num_towers": 2, "network": "mlp", "num_members": 1}, "got network mlp"),
        ({"num_towers": 2, "network": "cnn", "num_members": 3}, "num_members 3"),
        ({"num_towers": 2, "network": "cnn", "num_members": 1, "prior_scale": 1.0}, "prior_scale 1.0"),
    ],
)
def test_settings_that_make_no_sense(changes, sentence):
    with pytest.raises(BathysphereError, match=sentence):
        ValuesConfig(**changes)
