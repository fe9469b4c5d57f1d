import subprocess
import sys

import numpy as np
import pytest
from numba import config as numba_config

from bathysphere.domains.base import Categories, Features
from bathysphere.errors import BathysphereError
from bathysphere.values import Batch, OptimiserConfig, ValuesConfig, mlp_kernels
from bathysphere.values.mlp import MlpLearner
from bathysphere.values.network_learner import NetworkLearner
from tests.oracles import mlp as oracle
from tests.oracles.learning import scales

BOARD = Categories((3, 4), 5)
SPECS = [Features(6), BOARD]
NUM_SEEDS = 2 if numba_config.DISABLE_JIT else 12


def observations(spec, shape, rng):
    if isinstance(spec, Features):
        x = rng.normal(size=(*shape, spec.size)).astype(np.float32)
        return x * (rng.random(x.shape) < 0.7)  # zeros are left out of the sums
    return rng.integers(spec.num_categories, size=(*shape, *spec.shape)).astype(np.uint8)


def batches(spec, num_members, num_updates, batch_size, rng, kind="bernoulli", num_targets=1):
    shape = (num_updates, batch_size)
    mask = {
        "bernoulli": rng.random((*shape, num_members)) < 0.5,
        "one_hot": np.eye(num_members, dtype=np.bool_)[rng.integers(num_members, size=shape)],
        "full": np.ones((*shape, num_members), np.bool_),
    }[kind]
    return Batch(observations(spec, shape, rng), rng.normal(size=(*shape, num_targets)).astype(np.float32), mask)


def pair(config, settings, spec, seed=0):
    fast = MlpLearner(config, settings, spec, np.random.default_rng(seed))
    return fast, NetworkLearner(config, settings, spec, np.random.default_rng(seed), "cpu")


def assert_same_state(left, right, **tolerance):
    left, right = ({name: v for name, v in state.items() if name != "base"} for state in (left, right))
    assert left.keys() == right.keys()
    for name, value in left.items():
        assert value.shape == right[name].shape
        assert value.dtype == right[name].dtype
        np.testing.assert_allclose(value, right[name], err_msg=name, **tolerance)


@pytest.mark.parametrize("spec", SPECS)
@pytest.mark.parametrize(
    "config",
    [
        ValuesConfig("mlp", 4, hidden=(8, 8), prior_scale=0.5, init_scale=2.0),
        ValuesConfig("mlp", 3, hidden=(40,), bias=False),
        ValuesConfig("mlp", 1, hidden=(5, 33, 7)),
    ],
)
def test_the_start_is_the_network_s(spec, config):
    fast, network = pair(config, OptimiserConfig(), spec)
    assert_same_state(
        {name: v for name, v in fast.state_dict().items() if not name.startswith("optimiser.")},
        network.state_dict(),
        rtol=0,
    )
    x = observations(spec, (300,), np.random.default_rng(1))
    np.testing.assert_allclose(fast.evaluate(x), network.evaluate(x), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("spec", SPECS)
@pytest.mark.parametrize("kind", ["bernoulli", "one_hot", "full"])
@pytest.mark.parametrize("normalise", ["all", "active", "member"])
@pytest.mark.parametrize("name", ["tf_rmsprop", "sgd", "adam"])
@pytest.mark.parametrize(("l2", "prior_scale", "num_targets"), [(0.0, 0.0, 1), (0.02, 0.5, 4)])
def test_updates_are_the_network_s(spec, kind, normalise, name, l2, prior_scale, num_targets):
    rng = np.random.default_rng(2)
    config = ValuesConfig("mlp", 4, hidden=(8, 6), prior_scale=prior_scale)
    # An eps that tames the signs of adam's first steps, where rounding would decide.
    settings = OptimiserConfig(name, 0.01, eps=1e-4, l2=l2, normalise=normalise)
    fast, network = pair(config, settings, spec)
    batch = batches(spec, 4, 6, 8, rng, kind, num_targets)
    left, right = fast.update(batch), network.update(batch)
    assert left.loss == pytest.approx(right.loss, rel=1e-4)
    assert left.gradient_norm == pytest.approx(right.gradient_norm, rel=1e-4)
    np.testing.assert_allclose(left.member_losses, right.member_losses, rtol=1e-4)
    assert_same_state(fast.state_dict(), network.state_dict(), rtol=1e-3, atol=1e-5)


@pytest.mark.parametrize("spec", SPECS)
def test_a_row_s_value_does_not_depend_on_the_others(spec):
    rng = np.random.default_rng(3)
    learner = MlpLearner(ValuesConfig("mlp", 5, prior_scale=0.3), OptimiserConfig(), spec, rng)
    learner.update(batches(spec, 5, 5, 32, rng))
    x = observations(spec, (1500,), rng)
    values, order = learner.evaluate(x), rng.permutation(1500)
    np.testing.assert_array_equal(learner.evaluate(x[order]), values[order])
    for size in (1, 3, 7, 130):
        np.testing.assert_array_equal(learner.evaluate(x[11 : 11 + size]), values[11 : 11 + size])


@pytest.mark.parametrize("name", ["tf_rmsprop", "sgd", "adam"])
@pytest.mark.parametrize("spec", SPECS)
def test_saved_states_are_exchanged_with_the_network(name, spec):
    rng = np.random.default_rng(4)
    config, settings = ValuesConfig("mlp", 4, hidden=(8, 6), prior_scale=0.5), OptimiserConfig(name, 0.01, eps=1e-4)
    first, second = batches(spec, 4, 4, 8, rng), batches(spec, 4, 4, 8, rng)
    fast, network = pair(config, settings, spec)
    fresh_fast, fresh_network = pair(config, settings, spec, seed=9)
    fast.update(first)
    network.update(first)
    fresh_fast.load_state_dict(network.state_dict())
    fresh_network.load_state_dict(fast.state_dict())
    for learner in (fast, fresh_fast, fresh_network):
        learner.update(second)
    assert_same_state(fresh_fast.state_dict(), fast.state_dict(), rtol=1e-3, atol=1e-5)
    assert_same_state(fresh_network.state_dict(), fast.state_dict(), rtol=1e-3, atol=1e-5)


@pytest.mark.parametrize("spec", SPECS)
def test_saving_changes_nothing(spec):
    rng = np.random.default_rng(5)
    config = ValuesConfig("mlp", 4, hidden=(8, 6))
    batch = batches(spec, 4, 60, 2, rng, "one_hot")
    saving, plain = (MlpLearner(config, OptimiserConfig(), spec, np.random.default_rng(0)) for _ in range(2))
    for u in range(60):
        saving.update(Batch(*(part[u : u + 1] for part in batch[:3])))
        saving.state_dict()
    plain.update(batch)
    for name, value in saving.state_dict().items():
        np.testing.assert_array_equal(value, plain.state_dict()[name])


def test_the_optimiser_s_state_must_fit():
    config = ValuesConfig("mlp", 2, hidden=(3,))
    saved = MlpLearner(config, OptimiserConfig("adam"), BOARD, np.random.default_rng(0)).state_dict()
    learner = MlpLearner(config, OptimiserConfig("tf_rmsprop"), BOARD, np.random.default_rng(0))
    with pytest.raises(BathysphereError, match="they were saved with"):
        learner.load_state_dict(saved)


def test_a_base_out_of_range_is_refused():
    rng = np.random.default_rng(7)
    learner = MlpLearner(ValuesConfig("mlp", 2, hidden=(3,)), OptimiserConfig(), BOARD, rng)
    learner.update(batches(BOARD, 2, 1, 4, rng, "full"))
    saved = learner.state_dict()
    assert saved["base"].shape == (12,)
    with pytest.raises(BathysphereError, match="expected 0 to 4"):
        learner.load_state_dict(saved | {"base": saved["base"] + 5})


def test_a_small_mlp_needs_no_torch():
    code = (
        "import sys, numpy as np\n"
        "from bathysphere.domains.base import Features\n"
        "from bathysphere.values import Ensemble, OptimiserConfig, ValuesConfig\n"
        "ensemble = Ensemble(ValuesConfig('mlp'), OptimiserConfig(), Features(3), 0)\n"
        "ensemble.evaluate(np.ones((1, 3), np.float32))\n"
        "sys.exit('torch' in sys.modules)\n"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def member_layers(state, hidden, members, e, is_board):
    """Member e's layers as the oracle wants them, out of a saved state."""
    layers = []
    for index, outputs in enumerate([*hidden, 1]):
        weight = state[f"network.layers.{index}.weight"]
        bias = state.get(f"network.layers.{index}.bias", np.zeros(members * outputs)).reshape(members, outputs)[e]
        if is_board and index == 0:
            own = weight.reshape(-1, members, outputs)[:, e].T
        else:
            own = weight[e]
        layers.append((own.astype(float).tolist(), bias.astype(float).tolist()))
    return layers


@pytest.mark.kernels
@pytest.mark.parametrize("seed", range(NUM_SEEDS))
@pytest.mark.parametrize("spec", [Features(3), Categories((2,), 3)])
@pytest.mark.parametrize(("hidden", "bias"), [((4,), True), ((5, 3), False), ((4, 3, 9), True)])
def test_kernels_are_the_oracle(seed, spec, hidden, bias):
    """Values, loss and gradient (one sgd step of rate 1) against plain Python."""
    rng = np.random.default_rng(seed)
    is_board = isinstance(spec, Categories)
    num_categories = spec.num_categories if is_board else 0
    config = ValuesConfig("mlp", 2, hidden=hidden, bias=bias)
    learner = MlpLearner(config, OptimiserConfig("sgd", 1.0, normalise="active"), spec, rng)
    start = learner.state_dict()
    for name in start:
        if name.endswith("bias"):  # zero biases would hide mistakes in their layout
            start[name] = rng.normal(size=start[name].shape).astype(np.float32)
    learner.load_state_dict(start)
    batch = batches(spec, 2, 1, 3, rng)
    entries = [oracle.inputs(x, num_categories) for x in batch.observations[0].tolist()]
    members = [member_layers(start, hidden, 2, e, is_board) for e in range(2)]
    expected = [[oracle.value(layers, x) for layers in members] for x in entries]
    np.testing.assert_allclose(learner.evaluate(batch.observations[0]), expected, rtol=1e-4, atol=1e-5)

    stats, weights = learner.update(batch), learner.state_dict()
    total, norm = 0.0, 0.0
    for e, scale in enumerate(scales(batch.mask[0].tolist(), "active")):
        kept = [
            (x, float(target[0]))
            for x, target, keep in zip(entries, batch.targets[0], batch.mask[0], strict=True)
            if keep[e]
        ]
        total += oracle.loss(members[e], kept, scale)
        after = member_layers(weights, hidden, 2, e, is_board)
        slopes = oracle.gradient(members[e], kept, scale)
        for (w0, b0), (w1, b1), (dw, db) in zip(members[e], after, slopes, strict=True):
            np.testing.assert_allclose(np.subtract(w0, w1), dw, rtol=1e-3, atol=1e-4)
            norm += np.square(dw).sum()
            if bias:
                np.testing.assert_allclose(np.subtract(b0, b1), db, rtol=1e-3, atol=1e-4)
                norm += np.square(db).sum()
    assert stats.loss == pytest.approx(total, rel=1e-4, abs=1e-6)
    assert stats.gradient_norm == pytest.approx(norm**0.5, rel=1e-3, abs=1e-5)


@pytest.mark.kernels
def test_postponed_decay_is_the_dense_decay_bit_for_bit():
    rng = np.random.default_rng(6)
    last_update = rng.integers(30, size=(2, 3))
    mean_square = (10.0 ** rng.uniform(-38, 0, (2, 3, 8))).astype(np.float32)
    expected = mean_square.copy()
    for e, row, j in np.ndindex(expected.shape):
        for _ in range(30 - last_update[e, row]):
            m = np.float32(0.9) * expected[e, row, j]
            expected[e, row, j] = m if m >= np.finfo(np.float32).tiny else 0
    mlp_kernels.settle(mean_square, last_update, 0.9, 30)
    np.testing.assert_array_equal(mean_square, expected)
    assert (last_update == 30).all()
