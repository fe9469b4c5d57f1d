import subprocess
import sys

import numpy as np
import pytest
import torch

from bathysphere.domains.base import Categories, Features
from bathysphere.errors import BathysphereError
from bathysphere.values import Batch, Ensemble, OptimiserConfig, ValuesConfig

CELL = Categories((1,), 30)
BOARD = Categories((3, 4), 5)
TABLE = ValuesConfig("linear", num_members=4, bias=False)
MLP = ValuesConfig("mlp", num_members=4, hidden=(8, 8), prior_scale=0.5)
CNN = ValuesConfig("cnn", num_members=2, conv_layers=2, conv_channels=3, dense=4)
INT8 = ValuesConfig(
    "cnn", 2, conv_layers=3, conv_channels=3, dense=4, residual=True, shared_trunk=True, precision="int8"
)
OPTIMISERS = ["tf_rmsprop", "sgd", "adam", "rmsprop"]


def observations(spec, shape, rng):
    if isinstance(spec, Features):
        return rng.normal(size=(*shape, spec.size)).astype(np.float32)
    return rng.integers(spec.num_categories, size=(*shape, *spec.shape)).astype(np.int32)


def batches(spec, num_members, num_updates, batch_size, rng, num_targets=1):
    shape = (num_updates, batch_size)
    targets = rng.normal(size=(*shape, num_targets)).astype(np.float32)
    mask = rng.random((*shape, num_members)) < 0.5
    return Batch(observations(spec, shape, rng), targets, mask)


def taken(batch, where):
    return Batch(*(None if part is None else part[where] for part in batch))


CASES = [
    *((TABLE, CELL, name) for name in ("delta", *OPTIMISERS)),
    *((MLP, Features(6), name) for name in OPTIMISERS),
    (MLP, BOARD, "tf_rmsprop"),
    (CNN, BOARD, "tf_rmsprop"),
    (CNN, BOARD, "adam"),
    (INT8, BOARD, "adam"),
]


@pytest.mark.parametrize(("config", "spec", "name"), CASES)
def test_resume_continues_bit_for_bit(config, spec, name):
    rng = np.random.default_rng(1)
    settings = OptimiserConfig(name=name, learning_rate=0.01)
    ensemble, other = (Ensemble(config, settings, spec, seed) for seed in (1, 2))
    batch = batches(spec, config.num_members, 9, 8, rng)
    ensemble.update_many(taken(batch, slice(4)))
    saved = ensemble.state_dict()
    other.load_state_dict(saved)
    kept = {key: value.copy() for key, value in saved.items()}
    for u in range(4, 9):
        stats, other_stats = ensemble.update(taken(batch, u)), other.update(taken(batch, u))
        assert stats.loss == other_stats.loss
        assert stats.gradient_norm == other_stats.gradient_norm
    probe = observations(spec, (50,), rng)
    assert ensemble.evaluate(probe).flags.c_contiguous
    np.testing.assert_array_equal(ensemble.evaluate(probe), other.evaluate(probe))
    for key, value in ensemble.state_dict().items():
        np.testing.assert_array_equal(value, other.state_dict()[key])
        np.testing.assert_array_equal(saved[key], kept[key])  # a saved state is a copy


@pytest.mark.parametrize(("config", "spec", "name"), CASES)
def test_update_many_is_updates_in_order(config, spec, name):
    rng = np.random.default_rng(2)
    settings = OptimiserConfig(name=name, learning_rate=0.01)
    together, apart = (Ensemble(config, settings, spec, 5) for _ in range(2))
    batch = batches(spec, config.num_members, 6, 8, rng)
    stats = together.update_many(batch)
    parts = [apart.update(taken(batch, u)) for u in range(6)]
    for key, value in together.state_dict().items():
        np.testing.assert_array_equal(value, apart.state_dict()[key])
    assert stats.loss == pytest.approx(np.mean([part.loss for part in parts]), rel=1e-5)
    assert stats.gradient_norm == pytest.approx(np.mean([part.gradient_norm for part in parts]), rel=1e-5)


@pytest.mark.parametrize("num_targets", [1, 4])
@pytest.mark.parametrize("name", ["tf_rmsprop", "sgd"])
@pytest.mark.parametrize("normalise", ["all", "active", "member"])
def test_table_and_network_agree(name, normalise, num_targets):
    """The same linear ensemble, once as a table and once as a network (which a tiny l2 asks for)."""
    rng = np.random.default_rng(3)
    table, network = (
        Ensemble(TABLE, OptimiserConfig(name, 0.01, normalise=normalise, l2=l2), CELL, 0) for l2 in (0.0, 1e-30)
    )
    cells = np.arange(30, dtype=np.int32)[:, None]
    np.testing.assert_allclose(table.evaluate(cells), network.evaluate(cells), rtol=1e-6)
    batch = batches(CELL, 4, 30, 8, rng, num_targets)
    left, right = table.update_many(batch), network.update_many(batch)
    np.testing.assert_allclose(table.evaluate(cells), network.evaluate(cells), rtol=1e-4, atol=1e-5)
    assert left.loss == pytest.approx(right.loss, rel=1e-4)
    assert left.gradient_norm == pytest.approx(right.gradient_norm, rel=1e-4)
    np.testing.assert_allclose(left.member_losses, right.member_losses, rtol=1e-4)


@pytest.mark.parametrize(("config", "spec", "name"), CASES)
def test_a_common_target_is_the_same_target_for_each(config, spec, name):
    rng = np.random.default_rng(11)
    common, own = (Ensemble(config, OptimiserConfig(name, 0.01), spec, 5) for _ in range(2))
    batch = batches(spec, config.num_members, 3, 8, rng)
    left = common.update_many(batch)
    right = own.update_many(batch._replace(targets=np.repeat(batch.targets, config.num_members, axis=2)))
    assert left.loss == pytest.approx(right.loss, rel=1e-6)
    for key, value in common.state_dict().items():
        np.testing.assert_allclose(value, own.state_dict()[key], rtol=1e-6, atol=1e-9)


@pytest.mark.parametrize("name", OPTIMISERS)
def test_the_network_follows_own_targets_as_the_plain_loss_says(name):
    """The update against one written out with autograd on the same weights, for a network with a bias."""
    rng = np.random.default_rng(12)
    settings = OptimiserConfig(name, 0.01)
    ensemble = Ensemble(ValuesConfig("linear", 3), settings, Features(5), 0)
    batch = batches(Features(5), 3, 1, 8, rng, num_targets=3)
    state = ensemble.state_dict()
    weights = {k: torch.from_numpy(v).requires_grad_() for k, v in state.items() if k.startswith("network.")}
    weight, bias = (next(v for k, v in weights.items() if k.endswith(end)) for end in ("weight", "bias"))
    x, targets, mask = (torch.from_numpy(part[0]) for part in batch[:3])
    loss = 0.0
    for e in range(3):
        for i in range(8):
            if mask[i, e]:
                error = (weight[e].ravel() * x[i]).sum() + bias[e].ravel()[0] - targets[i, e]
                loss = loss + error**2 / 24
    loss.backward()
    stats = ensemble.update_many(batch)
    assert stats.loss == pytest.approx(float(loss.detach()), rel=1e-5)
    norm = sum(float(v.grad.square().sum()) for v in weights.values()) ** 0.5
    assert stats.gradient_norm == pytest.approx(norm, rel=1e-5)
    for key, value in ensemble.state_dict().items():
        if key in weights and name == "sgd":
            expected = (weights[key] - 0.01 * weights[key].grad).detach()
            np.testing.assert_allclose(value, expected, rtol=1e-5, atol=1e-7)


@pytest.mark.parametrize(("config", "spec"), [(TABLE, CELL), (MLP, Features(6))])
def test_masked_members_do_not_move(config, spec):
    rng = np.random.default_rng(4)
    ensemble = Ensemble(config, OptimiserConfig(learning_rate=0.01), spec, 0)
    probe = observations(spec, (20,), rng)
    before = ensemble.evaluate(probe).copy()
    batch = batches(spec, 4, 3, 16, rng)
    batch.mask[...] = np.array([True, False, True, False])
    stats = ensemble.update_many(batch)
    after = ensemble.evaluate(probe)
    np.testing.assert_array_equal(before[:, [1, 3]], after[:, [1, 3]])
    assert (before[:, [0, 2]] != after[:, [0, 2]]).any()
    np.testing.assert_array_equal(np.isnan(stats.member_losses), [False, True, False, True])


def test_loss_normalisations_by_hand():
    # Two entries, two members, weights made 0: squared errors 1 and 9; mask keeps (1, both) and (3, first).
    expected = {"all": (1 + 1 + 9) / 4, "active": (1 + 1 + 9) / 3, "member": (1 + 9) / 2 + 1}
    for normalise, loss in expected.items():
        for config in (ValuesConfig("linear", 2, bias=False), ValuesConfig("linear", 2)):
            ensemble = Ensemble(config, OptimiserConfig(normalise=normalise), Categories((1,), 2), 0)
            state = ensemble.state_dict()
            weights = next(key for key in state if key == "table" or key.endswith("weight"))
            ensemble.load_state_dict(state | {weights: np.zeros_like(state[weights])})
            mask = np.array([[True, True], [True, False]])
            stats = ensemble.update(Batch(np.array([[0], [1]], np.int32), np.array([[1], [3]], np.float32), mask))
            assert stats.loss == pytest.approx(loss)
            np.testing.assert_allclose(stats.member_losses, [5, 1])


def test_l2_term_by_hand():
    ensemble = Ensemble(ValuesConfig("linear", 1), OptimiserConfig(l2=0.1), Features(2), 0)
    state = {"network.layers.0.weight": np.array([[[3.0, 4.0]]], np.float32)}
    state["network.layers.0.bias"] = np.array([[[1.0]]], np.float32)
    ensemble.load_state_dict(state)
    empty = Batch(np.zeros((1, 2), np.float32), np.zeros((1, 1), np.float32), np.zeros((1, 1), np.bool_))
    # Two tensors: 0.1 / 2 * (25 + 1) / 2.
    assert ensemble.update(empty).loss == pytest.approx(0.65)


@pytest.mark.parametrize(("config", "spec"), [(TABLE, CELL), (MLP, BOARD)])
def test_learns_its_targets(config, spec):
    rng = np.random.default_rng(5)
    ensemble = Ensemble(config, OptimiserConfig("sgd", 0.1, normalise="member"), spec, 0)
    x = observations(spec, (8,), rng)
    x[:, 0] = np.arange(8)[:, None] % 5 if spec is BOARD else np.arange(8)
    targets = np.linspace(-1, 1, 8, dtype=np.float32)[:, None]
    batch = Batch(x, targets, np.ones((8, 4), np.bool_))
    first = ensemble.update(batch).loss
    for _ in range(300):
        last = ensemble.update(batch).loss
    assert last < 0.02 * first


def test_delta_rule_replaces_the_value_at_rate_one():
    ensemble = Ensemble(TABLE, OptimiserConfig("delta", 1.0), CELL, 0)
    batch = Batch(np.array([[7], [7]], np.int32), np.array([[3], [2]], np.float32), np.ones((2, 4), np.bool_))
    ensemble.update(batch)
    np.testing.assert_array_equal(ensemble.evaluate(np.array([[7]], np.int32)), [[2, 2, 2, 2]])


def test_priors_stay_and_widen_the_start():
    def spread(prior_scale):
        config = ValuesConfig("linear", 20, bias=False, prior_scale=prior_scale)
        return Ensemble(config, OptimiserConfig(), Categories((1,), 400), 0).evaluate(np.arange(400)[:, None]).std()

    assert spread(0.0) == pytest.approx((2 / 401) ** 0.5, rel=0.05)
    assert spread(1.0) == pytest.approx((4 / 401) ** 0.5, rel=0.05)
    rng = np.random.default_rng(6)
    ensemble = Ensemble(MLP, OptimiserConfig("adam", 0.01), Features(6), 0)
    before = ensemble.state_dict()
    ensemble.update_many(batches(Features(6), 4, 3, 8, rng))
    after = ensemble.state_dict()
    for name in before:
        assert np.array_equal(before[name], after[name]) == name.startswith("prior.")


def test_seed_decides_and_torch_generator_is_left_alone():
    torch.manual_seed(0)
    state = torch.get_rng_state()
    x = np.ones((3, 6), np.float32)
    first = Ensemble(MLP, OptimiserConfig(), Features(6), 7).evaluate(x)
    torch.manual_seed(99)
    again = Ensemble(MLP, OptimiserConfig(), Features(6), np.random.default_rng(7)).evaluate(x)
    other = Ensemble(MLP, OptimiserConfig(), Features(6), 8).evaluate(x)
    np.testing.assert_array_equal(first, again)
    assert (first != other).all()
    torch.manual_seed(0)
    assert torch.equal(state, torch.get_rng_state())


def test_long_input_is_evaluated_in_pieces():
    rng = np.random.default_rng(8)
    ensemble = Ensemble(MLP, OptimiserConfig(), Features(6), 0)
    x = rng.normal(size=(1300, 6)).astype(np.float32)
    values = ensemble.evaluate(x)
    assert values.shape == (1300, 4)
    assert values.dtype == np.float32
    np.testing.assert_allclose(values[700:710], ensemble.evaluate(x[700:710]), rtol=1e-4, atol=1e-5)


def test_no_rows_and_no_updates():
    for config, spec in ((TABLE, CELL), (MLP, Features(6)), (MLP, BOARD), (CNN, BOARD)):
        rng = np.random.default_rng(9)
        ensemble = Ensemble(config, OptimiserConfig(), spec, 0)
        assert ensemble.evaluate(observations(spec, (0,), rng)).shape == (0, config.num_members)
        stats = ensemble.update_many(batches(spec, config.num_members, 0, 8, rng))
        assert stats.loss == 0
        assert np.isnan(stats.member_losses).all()


@pytest.mark.parametrize(("config", "spec"), [(TABLE, CELL), (MLP, Features(6)), (MLP, BOARD), (CNN, BOARD)])
def test_memory_order_and_read_only_inputs_do_not_matter(config, spec):
    rng = np.random.default_rng(10)
    batch = batches(spec, config.num_members, 3, 8, rng)
    plain, odd = (Ensemble(config, OptimiserConfig(), spec, 0) for _ in range(2))
    plain.update_many(batch)
    strange = Batch(*(np.asfortranarray(part) for part in batch[:3]))
    for part in strange[:3]:
        part.flags.writeable = False
    odd.update_many(strange)
    x = np.asfortranarray(batch.observations[0])
    x.flags.writeable = False
    np.testing.assert_array_equal(plain.evaluate(batch.observations[0]), odd.evaluate(x))


def test_a_table_needs_no_torch():
    code = (
        "import sys, numpy as np\n"
        "from bathysphere.domains.base import Categories\n"
        "from bathysphere.values import Ensemble, OptimiserConfig, ValuesConfig\n"
        "ensemble = Ensemble(ValuesConfig(bias=False), OptimiserConfig(), Categories((1,), 9), 0)\n"
        "ensemble.evaluate(np.array([[3]]))\n"
        "sys.exit('torch' in sys.modules)\n"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


class TestRefusals:
    def test_wrong_shape(self):
        ensemble = Ensemble(MLP, OptimiserConfig(), Features(6), 0)
        with pytest.raises(BathysphereError, match="another domain"):
            ensemble.evaluate(np.zeros((3, 5), np.float32))

    @pytest.mark.parametrize("code", [-1, 30])
    @pytest.mark.parametrize("optimiser", ["sgd", "adam"])
    def test_category_out_of_range(self, code, optimiser):
        ensemble = Ensemble(TABLE, OptimiserConfig(optimiser), CELL, 0)
        with pytest.raises(BathysphereError, match="expected 0 to 29"):
            ensemble.evaluate(np.array([[code]], np.int32))

    def test_float_categories(self):
        with pytest.raises(BathysphereError, match="categories are integers"):
            Ensemble(TABLE, OptimiserConfig(), CELL, 0).evaluate(np.zeros((1, 1)))

    def test_wrong_mask(self):
        ensemble = Ensemble(TABLE, OptimiserConfig(), CELL, 0)
        with pytest.raises(BathysphereError, match="the mask"):
            ensemble.update(Batch(np.zeros((2, 1), np.int32), np.zeros((2, 1), np.float32), np.ones((2, 3), np.bool_)))

    @pytest.mark.parametrize("shape", [(2,), (2, 3), (3, 1)])
    def test_wrong_targets(self, shape):
        ensemble = Ensemble(TABLE, OptimiserConfig(), CELL, 0)
        with pytest.raises(BathysphereError, match="targets have shape"):
            ensemble.update(Batch(np.zeros((2, 1), np.int32), np.zeros(shape, np.float32), np.ones((2, 4), np.bool_)))

    @pytest.mark.parametrize(("config", "spec"), [(TABLE, CELL), (MLP, CELL)])
    def test_state_of_another_size(self, config, spec):
        saved = Ensemble(config, OptimiserConfig(), Categories((1,), 31), 0).state_dict()
        ensemble = Ensemble(config, OptimiserConfig(), spec, 0)
        with pytest.raises(BathysphereError, match="they were saved with"):
            ensemble.load_state_dict(saved)
        with pytest.raises(BathysphereError, match="they were saved with"):
            ensemble.load_state_dict({})

    def test_unknown_device(self):
        Ensemble(MLP, OptimiserConfig(), Features(6), 0, device="auto")
        for device in ("quantum", "xla"):
            with pytest.raises(BathysphereError, match="usable are"):
                Ensemble(MLP, OptimiserConfig(), Features(6), 0, device=device)

    def test_delta_rule_on_a_network(self):
        with pytest.raises(BathysphereError, match="tables only"):
            Ensemble(MLP, OptimiserConfig("delta", 0.3), Features(6), 0)


@pytest.mark.parametrize(
    ("schedule", "rates"),
    [({"half_life": 1}, (0.06, 0.03, 0.02)), ({"anneal_over": 3}, (0.045, 0.015, 0.0, 0.0))],
)
def test_the_learning_rate_falls(schedule, rates):
    rng, spec, config = np.random.default_rng(3), Features(6), ValuesConfig("linear", num_members=2)
    batch = batches(spec, 2, len(rates), 8, rng)

    def trained(settings, state, u):
        ensemble = Ensemble(config, settings, spec, 0)
        if state is not None:
            ensemble.load_state_dict(state)
        ensemble.update(taken(batch, u))
        return ensemble.state_dict()

    falling, steady = None, Ensemble(config, OptimiserConfig(), spec, 0).weights()
    for u, rate in enumerate(rates):
        falling = trained(OptimiserConfig(name="sgd", learning_rate=0.06, **schedule), falling, u)
        if rate:
            steady = trained(OptimiserConfig(name="sgd", learning_rate=rate), steady, u)
        for key, value in steady.items():
            np.testing.assert_allclose(falling[key], value, rtol=1e-6)


def test_a_rate_that_is_annealed_rises_first():
    rates = [OptimiserConfig(learning_rate=1.0, anneal_over=100).rate(u) for u in range(101)]
    np.testing.assert_allclose(rates[:4], [0.2, 0.4, 0.6, 0.8], atol=0.01)
    assert max(rates) == rates[4] > 0.99
    assert rates[4:100] == sorted(rates[4:100], reverse=True)
    assert rates[99] == rates[100] == 0.0


@pytest.mark.parametrize("config", [TABLE, MLP])
def test_small_ensembles_can_halve_their_rate_too(config):
    spec = CELL if config is TABLE else Features(6)
    ensemble, steady = (
        Ensemble(config, OptimiserConfig(name="sgd", learning_rate=0.5, half_life=half), spec, 0) for half in (1, None)
    )
    batch = batches(spec, config.num_members, 3, 8, np.random.default_rng(3))
    ensemble.update_many(batch)
    steady.update_many(batch)
    probe = observations(spec, (5,), np.random.default_rng(4))
    assert not np.allclose(ensemble.evaluate(probe), steady.evaluate(probe))


def test_a_running_mean_of_the_weights_plays():
    rng, spec, config = np.random.default_rng(5), Features(6), ValuesConfig("linear", num_members=2)
    plain, averaged = (
        Ensemble(config, OptimiserConfig(name="sgd", learning_rate=0.1, averaging=share), spec, 0)
        for share in (0.0, 0.75)
    )
    batch, probe = batches(spec, 2, 40, 8, rng), observations(spec, (5,), rng)
    mean = plain.evaluate(probe)  # of a linear network, the mean of weights gives the mean of values
    for u in range(40):
        plain.update(taken(batch, u))
        averaged.update(taken(batch, u))
        share = min(0.75, (u + 1) / (u + 10))  # a young mean keeps less
        mean = share * mean + (1 - share) * plain.evaluate(probe)
        np.testing.assert_allclose(averaged.evaluate(probe), mean, rtol=1e-5, atol=1e-6)
    resumed = Ensemble(config, OptimiserConfig(name="sgd", learning_rate=0.1, averaging=0.75), spec, 1)
    resumed.load_state_dict(averaged.state_dict())
    shipped = Ensemble(config, OptimiserConfig(name="sgd"), spec, 1)
    shipped.load_weights(averaged.weights())
    np.testing.assert_array_equal(shipped.evaluate(probe), averaged.evaluate(probe))
    for ensemble in (resumed, averaged):
        ensemble.update(taken(batch, 0))
    np.testing.assert_array_equal(resumed.evaluate(probe), averaged.evaluate(probe))


def test_compiled_learners_leave_averaging_to_the_network():
    for config, spec in ((TABLE, CELL), (MLP, Features(6))):
        ensemble = Ensemble(config, OptimiserConfig(name="sgd", learning_rate=0.5, averaging=0.9), spec, 0)
        assert any(name.startswith("trained.") for name in ensemble.state_dict())


def test_a_table_is_a_read_only_window_on_what_evaluate_looks_up():
    rng = np.random.default_rng(2)
    ensemble = Ensemble(TABLE, OptimiserConfig(learning_rate=0.1), CELL, seed=0)
    table, cells = ensemble.table, np.arange(CELL.num_categories, dtype=np.int32)[:, None]
    before = table.copy()
    ensemble.update_many(batches(CELL, TABLE.num_members, 3, 8, rng))
    assert (table != before).any()
    np.testing.assert_array_equal(table, ensemble.evaluate(cells))
    with pytest.raises(ValueError, match="read-only"):
        table[0] = 0.0
    assert Ensemble(MLP, OptimiserConfig(), Features(6), seed=0).table is None


@pytest.mark.parametrize(("config", "spec", "name"), CASES)
def test_what_no_optimiser_has_kept_is_refused(config, spec, name):
    rng, settings = np.random.default_rng(1), OptimiserConfig(name=name, learning_rate=0.01)
    ensemble = Ensemble(config, settings, spec, 1)
    ensemble.update(taken(batches(spec, config.num_members, 1, 8, rng), 0))
    state = ensemble.state_dict()
    kept = [key for key in state if key.rpartition(".")[2] in ("num_updates", "step", "last_update")]
    squares = [key for key in state if "sq" in key or key == "accumulators"]
    assert kept or squares or name == "sgd"
    wrong = [(key, number) for key in kept for number in (-1, 2**62)] + [(key, -1) for key in squares]
    for key, number in wrong:
        if state[key].size:
            with pytest.raises(BathysphereError, match="impossible"):
                Ensemble(config, settings, spec, 2).load_state_dict(state | {key: np.full_like(state[key], number)})
