"""Weights without the optimiser: what evaluation needs, and nothing else."""

import numpy as np
import pytest

from bathysphere.domains.base import Categories, Features
from bathysphere.errors import BathysphereError
from bathysphere.values import Batch, Ensemble, OptimiserConfig, ValuesConfig
from bathysphere.values.mlp import MlpLearner
from bathysphere.values.network_learner import NetworkLearner
from bathysphere.values.table import TableLearner

BOARD = Categories((3, 4), 5)
MLP = ValuesConfig("mlp", num_members=4, hidden=(8, 8), prior_scale=0.5)
CASES = [
    (ValuesConfig("linear", num_members=4, bias=False), Categories((1,), 30), "tf_rmsprop", TableLearner),
    (MLP, Features(6), "adam", MlpLearner),
    (MLP, BOARD, "tf_rmsprop", MlpLearner),
    (MLP, BOARD, "rmsprop", NetworkLearner),
    (ValuesConfig("cnn", 3, conv_layers=2, conv_channels=3, dense=4, shared_trunk=True), BOARD, "adam", NetworkLearner),
]


def _observations(spec, rng, *leading):
    if isinstance(spec, Features):
        return rng.normal(size=(*leading, spec.size)).astype(np.float32)
    return rng.integers(spec.num_categories, size=(*leading, *spec.shape)).astype(np.int32)


def _trained(config, spec, name, seed):
    rng = np.random.default_rng(seed)
    ensemble = Ensemble(config, OptimiserConfig(name=name, learning_rate=0.01), spec, seed)
    targets, mask = rng.normal(size=(5, 8, 1)).astype(np.float32), np.ones((5, 8, config.num_members), bool)
    ensemble.update_many(Batch(_observations(spec, rng, 5, 8), targets, mask))
    return ensemble


@pytest.mark.parametrize(("config", "spec", "name", "learner"), CASES)
def test_weights_are_all_that_evaluation_needs(config, spec, name, learner):
    ensemble = _trained(config, spec, name, 1)
    assert isinstance(ensemble._learner, learner)
    fresh = Ensemble(config, OptimiserConfig(name=name), spec, 7)
    fresh.load_weights(ensemble.weights())
    probe = _observations(spec, np.random.default_rng(3), 50)
    np.testing.assert_array_equal(fresh.evaluate(probe), ensemble.evaluate(probe))
    assert ensemble.weights().keys() < ensemble.state_dict().keys()
    assert not any(part in key for key in ensemble.weights() for part in ("optimiser", "accumulators", "update"))


@pytest.mark.parametrize(("config", "spec", "name", "learner"), CASES)
def test_loading_weights_leaves_the_optimiser_alone(config, spec, name, learner):
    ensemble, other = _trained(config, spec, name, 1), _trained(config, spec, name, 2)
    before = other.state_dict()
    other.load_weights(ensemble.weights())
    weights = ensemble.weights()
    for key, array in other.state_dict().items():
        np.testing.assert_array_equal(array, weights.get(key, before[key]))


@pytest.mark.parametrize(("config", "spec", "name", "learner"), CASES)
def test_a_snapshot_stays_while_the_ensemble_learns(config, spec, name, learner):
    ensemble, other = _trained(config, spec, name, 1), _trained(config, spec, name, 2)
    probe = _observations(spec, np.random.default_rng(3), 50)
    before, snapshot = ensemble.evaluate(probe), ensemble.snapshot()
    rng = np.random.default_rng(4)
    mask = np.ones((5, 8, config.num_members), bool)
    ensemble.update_many(Batch(_observations(spec, rng, 5, 8), rng.normal(size=(5, 8, 1)).astype(np.float32), mask))
    after = ensemble.evaluate(probe)
    assert not np.array_equal(before, after)
    np.testing.assert_array_equal(snapshot.evaluate(probe), before)
    # Other weights fit in, and the ensemble does not notice.
    snapshot.load_weights(other.weights())
    np.testing.assert_array_equal(snapshot.evaluate(probe), other.evaluate(probe))
    np.testing.assert_array_equal(ensemble.evaluate(probe), after)


@pytest.mark.parametrize(("config", "spec", "name", "learner"), CASES)
def test_misfits_are_refused_and_change_nothing(config, spec, name, learner):
    ensemble = _trained(config, spec, name, 1)
    weights = ensemble.weights()
    key = next(key for key in weights if key != "base")
    lacking = {k: v for k, v in weights.items() if k != key}
    for misfit in (lacking, {**weights, key: weights[key][..., :1]}, {**weights, "more": weights[key]}):
        with pytest.raises(BathysphereError, match="the saved values hold"):
            ensemble.load_weights(misfit)
    for k, array in ensemble.weights().items():
        np.testing.assert_array_equal(array, weights[k])


def test_of_averaged_weights_the_mean_is_what_plays():
    settings = OptimiserConfig(name="adam", learning_rate=0.01, averaging=0.9)
    config = ValuesConfig("cnn", 3, conv_layers=1, conv_channels=3, dense=4)
    one, other = (Ensemble(config, settings, BOARD, seed) for seed in (1, 2))
    rng = np.random.default_rng(1)
    batch = _observations(BOARD, rng, 5, 8), rng.normal(size=(5, 8, 1)).astype(np.float32), np.ones((5, 8, 3), bool)
    one.update_many(Batch(*batch))
    other.load_weights(one.weights())
    probe = _observations(BOARD, rng, 50)
    np.testing.assert_array_equal(other.evaluate(probe), one.evaluate(probe))


def test_both_learners_of_an_mlp_load_the_other_ones_weights():
    here, there = (_trained(MLP, BOARD, name, 1) for name in ("tf_rmsprop", "rmsprop"))
    probe = _observations(BOARD, np.random.default_rng(3), 50)
    wanted = here.evaluate(probe)
    there.load_weights(here.weights())
    np.testing.assert_allclose(there.evaluate(probe), wanted, rtol=1e-5, atol=1e-6)
    here.load_weights(there.weights())  # without a base
    np.testing.assert_allclose(here.evaluate(probe), wanted, rtol=1e-5, atol=1e-6)
