"""Playing in 8-bit integers: what is rounded, what must not change, and where it is not used."""

import pickle
import platform

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from bathysphere.agents.loading import load_trained
from bathysphere.domains import make_domain
from bathysphere.domains.base import Categories
from bathysphere.errors import BathysphereError
from bathysphere.values import Batch, Ensemble, OptimiserConfig, ValuesConfig, network_learner
from bathysphere.values.int8 import ACTIVATION_LEVELS, is_exact_here
from bathysphere.values.int8_kernels import add_and_round, head_values, rectify_and_round
from tests.oracles import int8 as oracle

BOARD = Categories((4, 5), 6)
OPTIMISER = OptimiserConfig(name="adam", learning_rate=0.01, averaging=0.5)


def settings(**changes) -> ValuesConfig:
    usual = {"num_members": 3, "conv_layers": 5, "conv_channels": 8, "dense": 7, "residual": True, "shared_trunk": True}
    return ValuesConfig("cnn", **{**usual, "precision": "int8", **changes})


def boards(num: int, seed: int = 0, spec: Categories = BOARD) -> np.ndarray:
    return np.random.default_rng(seed).integers(spec.num_categories, size=(num, *spec.shape)).astype(np.uint8)


def trained(config: ValuesConfig, seed: int = 0) -> Ensemble:
    """An ensemble whose biases are no longer zero."""
    ensemble = Ensemble(config, OPTIMISER, BOARD, seed)
    targets = np.random.default_rng(seed).normal(size=(20, 16, 1)).astype(np.float32)
    observations = boards(20 * 16, seed).reshape(20, 16, *BOARD.shape)
    ensemble.update_many(Batch(observations, targets, np.ones((20, 16, config.num_members), np.bool_)))
    return ensemble


def test_processors_of_this_kind_can():
    assert is_exact_here() == (platform.machine() in ("x86_64", "AMD64"))


@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"global_pooling": True},
        {"bias": False},
        {"conv_layers": 1},
        {"conv_kernel": 1, "global_pooling": True},
        {"conv_kernel": 5},
        {"num_members": 1, "shared_trunk": False},
        {"conv_channels": 3, "dense": 1, "conv_layers": 3},
    ],
    ids=str,
)
def test_values_are_those_of_the_slow_twin(changes):
    ensemble = trained(settings(**changes))
    states = boards(12, 1)
    expected = [oracle.values(ensemble.weights(), board, BOARD.num_categories) for board in states]
    values = ensemble.evaluate(states)
    assert values.dtype == np.float32
    np.testing.assert_allclose(values, expected, rtol=1e-5, atol=1e-5)


def test_rounding_is_small():
    rounded = trained(settings(global_pooling=True, conv_channels=32, conv_layers=7))
    exact = Ensemble(
        settings(global_pooling=True, conv_channels=32, conv_layers=7, precision="float32"), OPTIMISER, BOARD, 1
    )
    exact.load_weights(rounded.weights())
    states = boards(300, 2)
    expected = exact.evaluate(states)
    error = rounded.evaluate(states) - expected
    assert 0 < np.sqrt(np.mean(error**2)) < 0.03 * expected.std()


@pytest.mark.parametrize("name", ["sokoban", "sokoban-10x10"])
def test_the_trained_agent_hardly_notices(name):
    agent = load_trained(name)
    config = agent.config
    domain = make_domain(config.domain)
    states = domain.observe(domain.initial(50, np.random.default_rng(3)))
    both = {}
    for precision in ("float32", "int8"):
        values = ValuesConfig(**{**vars(config.values), "precision": precision})
        ensemble = Ensemble(values, config.optimiser, domain.observation, 0, num_actions=len(domain.action_names))
        ensemble.load_weights(agent.values.weights())
        both[precision] = ensemble.evaluate(states)
    np.testing.assert_allclose(both["int8"], both["float32"], atol=0.4)  # of values from 0 to 10
    assert np.corrcoef(both["int8"].ravel(), both["float32"].ravel())[0, 1] > 0.999


def test_a_value_does_not_depend_on_the_batch():
    ensemble = trained(settings(global_pooling=True))
    states = boards(600, 3)  # more than are evaluated at once
    together = ensemble.evaluate(states)
    np.testing.assert_array_equal(together[::-1], ensemble.evaluate(states[::-1]))
    alone = np.concatenate([ensemble.evaluate(states[i : i + 1]) for i in range(0, 600, 50)])
    np.testing.assert_array_equal(together[::50], alone)


def test_codes_of_any_integer_type_and_order():
    ensemble = trained(settings())
    states = boards(20, 4)
    expected = ensemble.evaluate(states)
    np.testing.assert_array_equal(ensemble.evaluate(states.astype(np.int64)), expected)
    np.testing.assert_array_equal(ensemble.evaluate(np.asfortranarray(states)), expected)


def test_it_follows_updates_and_loads_and_a_snapshot_stays():
    ensemble, other = trained(settings(), 0), trained(settings(), 1)
    states = boards(30, 5)
    before, snapshot = ensemble.evaluate(states), ensemble.snapshot()
    targets, mask = np.full((30, 1), 5.0, np.float32), np.ones((30, 3), np.bool_)
    for _ in range(100):
        ensemble.update(Batch(states, targets, mask))
    assert np.abs(ensemble.evaluate(states) - 5).mean() < 0.3 < np.abs(before - 5).mean()
    np.testing.assert_array_equal(snapshot.evaluate(states), before)
    other.load_weights(ensemble.weights())
    np.testing.assert_array_equal(other.evaluate(states), ensemble.evaluate(states))
    snapshot.load_weights(ensemble.weights())
    np.testing.assert_array_equal(snapshot.evaluate(states), ensemble.evaluate(states))


def test_it_can_be_sent_to_another_process():
    ensemble = trained(settings(global_pooling=True))
    sent = pickle.loads(pickle.dumps(ensemble))
    states = boards(30, 6)
    np.testing.assert_array_equal(sent.evaluate(states), ensemble.evaluate(states))
    batch = Batch(states, np.ones((30, 1), np.float32), np.ones((30, 3), np.bool_))
    for one in (sent, ensemble):
        one.update(batch)
    np.testing.assert_array_equal(sent.evaluate(states), ensemble.evaluate(states))


def test_learning_is_not_rounded():
    rounded, exact = trained(settings()), trained(settings(precision="float32"))
    for name, array in rounded.state_dict().items():
        np.testing.assert_array_equal(array, exact.state_dict()[name])


def test_where_it_cannot_be_exact_it_plays_in_floats(monkeypatch):
    monkeypatch.setattr(network_learner, "is_exact_here", lambda: False)
    states = boards(10)
    exact = trained(settings(precision="float32")).evaluate(states)
    np.testing.assert_array_equal(trained(settings()).evaluate(states), exact)


def test_a_network_of_zeros_has_no_scale():
    ensemble = Ensemble(settings(global_pooling=True), OPTIMISER, BOARD, 0)
    ensemble.load_weights({name: np.zeros_like(array) for name, array in ensemble.weights().items()})
    np.testing.assert_array_equal(ensemble.evaluate(boards(5)), 0)


@pytest.mark.parametrize(
    "layer", ["0.weights.0", "0.weights.2", "0.biases.1", "0.pooled_weights.0", "1.weight", "2.bias"]
)
@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_what_is_not_a_number_is_not_hidden(layer, bad):
    ensemble = trained(settings(global_pooling=True))
    weights = ensemble.weights()
    weights[f"network.layers.{layer}"][:] = bad
    ensemble.load_weights(weights)
    assert not np.isfinite(ensemble.evaluate(boards(5))).any()


@pytest.mark.parametrize(
    "changes",
    [
        {"residual": False},
        {"conv_layers": 4},
        {"shared_trunk": False},
        {"prior_scale": 1.0},
        {"num_members": 1, "num_towers": 2},
    ],
    ids=str,
)
def test_networks_it_is_not_for_are_refused(changes):
    with pytest.raises(BathysphereError, match=r"values\.precision int8 is for a board network, or a residual cnn"):
        settings(**changes)


def test_other_networks_are_refused():
    with pytest.raises(BathysphereError, match=r"values\.precision int8"):
        ValuesConfig("mlp", precision="int8")


floats = st.floats(-100, 100, width=32)


@pytest.mark.kernels
@given(
    arrays(np.float32, (2, 6, 3), elements=floats),
    arrays(np.float32, 2, elements=st.floats(0, 10, width=32)),
    arrays(np.bool_, (2, 6)),
    arrays(np.float32, 3, elements=floats),
    arrays(np.float32, (2, 4), elements=floats),
    arrays(np.float32, (4, 3), elements=st.floats(-1, 1, width=32)),
)
def test_a_board_is_rounded_to_half_its_scale(products, before, floor, bias, pooled, pooled_weight):
    top, scales, rounded = ACTIVATION_LEVELS, before.copy(), np.full(products.shape, 7, np.uint8)
    rectify_and_round(products, scales, floor, bias, pooled, pooled_weight, top, rounded)
    told = pooled.astype(np.float64) @ pooled_weight
    exact = np.maximum(products * before[:, None, None].astype(np.float64) + bias + told[:, None], 0)
    exact *= floor[:, :, None]
    assert not rounded[~floor].any()
    largest = exact.max((1, 2))
    np.testing.assert_allclose(scales, largest / top, rtol=1e-4, atol=1e-4)
    slack = 1e-4 * (1 + np.abs(products).max() * before.max())
    assert np.all(
        np.abs(rounded * scales[:, None, None].astype(np.float64) - exact) <= scales[:, None, None] / 2 + slack
    )
    assert np.array_equal(rounded.max((1, 2)), np.where(scales > 0, top, 0))


@pytest.mark.kernels
@given(
    arrays(np.float32, (2, 6, 3), elements=floats),
    arrays(np.float32, (2, 6, 3), elements=floats),
    arrays(np.float32, 2, elements=st.floats(0, 10, width=32)),
    arrays(np.bool_, (2, 6)),
    arrays(np.float32, 3, elements=floats),
)
def test_a_block_adds_to_the_stream(products, stream, before, floor, bias):
    top, scales, rounded = ACTIVATION_LEVELS, before.copy(), np.full(products.shape, 7, np.uint8)
    after, pooled = stream.copy(), np.empty((2, 6), np.float32)
    add_and_round(products, scales, floor, bias, top, after, rounded, pooled)
    added = (products * before[:, None, None].astype(np.float64) + bias) * floor[:, :, None]
    slack = 1e-4 * (1 + np.abs(products).max() * before.max())
    np.testing.assert_allclose(after, stream + added, atol=slack)
    np.testing.assert_array_equal(after[~floor], stream[~floor])
    active = np.maximum(after, 0) * floor[:, :, None]
    num_floor = np.maximum(floor.sum(1), 1)[:, None]
    np.testing.assert_allclose(pooled[:, :3], active.sum(1) / num_floor, rtol=1e-4, atol=1e-4)
    np.testing.assert_array_equal(pooled[:, 3:], active.max(1))
    assert not rounded[~floor].any()
    assert np.all(
        np.abs(rounded * scales[:, None, None].astype(np.float64) - active) <= scales[:, None, None] * 0.501 + 1e-30
    )


@pytest.mark.kernels
def test_heads_are_a_hidden_layer_and_a_sum():
    rng = np.random.default_rng(0)
    products, bias = rng.normal(size=(4, 6)).astype(np.float32), rng.normal(size=6).astype(np.float32)
    weight, last = rng.normal(size=(3, 2)).astype(np.float32), rng.normal(size=3).astype(np.float32)
    scales = rng.random(4).astype(np.float32)
    hidden = np.maximum(products * scales[:, None] + bias, 0).reshape(4, 3, 2)
    expected = (hidden * weight).sum(-1) + last
    np.testing.assert_allclose(head_values(products, scales, bias, weight, last), expected, rtol=1e-5)
