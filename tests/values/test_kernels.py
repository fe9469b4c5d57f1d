import numpy as np
import pytest
from numba import config

from bathysphere.values import kernels
from tests.oracles.learning import DenseTable, one_hot_product, scales

NORMALISE = {"all": kernels.ALL, "active": kernels.ACTIVE, "member": kernels.MEMBER}
NUM_SEEDS = 5 if config.DISABLE_JIT else 40


def batches(rng, num_rows, num_members, num_updates, batch_size):
    """Random batches; some have a target for each member, some a common one."""
    rows = rng.integers(num_rows, size=(num_updates, batch_size)).astype(np.int32)
    num_targets = rng.choice([1, num_members])
    targets = rng.normal(size=(num_updates, batch_size, num_targets)).astype(np.float32)
    mask = rng.random((num_updates, batch_size, num_members)) < rng.choice([0.1, 0.5, 1.0])
    return rows, targets, mask


@pytest.mark.kernels
@pytest.mark.parametrize("seed", range(NUM_SEEDS))
def test_sum_rows_is_the_one_hot_product(seed):
    rng = np.random.default_rng(seed)
    num_rows, cells, categories, width = 70, int(rng.integers(1, 12)), 3, 4
    codes = rng.integers(categories, size=(num_rows, cells)).astype(np.uint8)
    if seed % 2:  # siblings: each row differs from the one before in one cell
        for i in range(1, num_rows):
            codes[i] = codes[i - 1]
            codes[i, rng.integers(cells)] = rng.integers(categories)
    table, bias = rng.normal(size=(cells * categories, width)), rng.normal(size=width)
    out = np.empty((num_rows, width))
    kernels.sum_rows(codes, table, bias, categories, out)
    expected = [one_hot_product(row, table.tolist(), bias.tolist(), categories) for row in codes.tolist()]
    np.testing.assert_allclose(out, expected, rtol=1e-12, atol=1e-12)


@pytest.mark.kernels
@pytest.mark.parametrize("normalise", NORMALISE)
def test_entry_scales(normalise):
    rng = np.random.default_rng(0)
    for _ in range(NUM_SEEDS):
        mask = rng.random((3, 4)) < 0.4
        out = np.empty(4)
        kernels.entry_scales(mask, NORMALISE[normalise], out)
        np.testing.assert_allclose(out, scales(mask.tolist(), normalise), rtol=1e-15)


@pytest.mark.kernels
@pytest.mark.parametrize("seed", range(NUM_SEEDS))
@pytest.mark.parametrize("normalise", NORMALISE)
@pytest.mark.parametrize("is_rmsprop", [True, False])
def test_gradient_steps_follow_the_dense_optimiser(seed, normalise, is_rmsprop):
    rng = np.random.default_rng(seed)
    num_rows, num_members, num_updates = 7, 3, 8
    table = rng.normal(size=(num_rows, num_members))
    oracle = DenseTable(table)
    accumulators, last_update = np.ones_like(table), np.zeros(num_rows, np.int64)
    gradient = np.zeros_like(table)
    done = 0
    for _ in range(4):
        rows, targets, mask = batches(rng, num_rows, num_members, num_updates, 3)
        errors, counts, totals = np.zeros(num_members), np.zeros(num_members), np.zeros(2)
        kernels.gradient_steps(
            *(table, rows, targets, mask, 0.05, NORMALISE[normalise]),
            *(is_rmsprop, 0.9, 1e-10, accumulators, last_update, done, gradient),
            *(errors, counts, totals),
        )
        done += num_updates
        oracle.losses.clear()
        oracle.norms.clear()
        for u in range(num_updates):
            batch = (rows[u].tolist(), targets[u].tolist(), mask[u].tolist(), normalise)
            if is_rmsprop:
                oracle.rmsprop(*batch, 0.05, 0.9, 1e-10)
            else:
                oracle.sgd(*batch, 0.05)
        np.testing.assert_allclose(table, oracle.weights, rtol=1e-12)
        if is_rmsprop:
            dense = accumulators * 0.9 ** (done - last_update)[:, None]
            np.testing.assert_allclose(dense, oracle.mean_squares, rtol=1e-12)
        np.testing.assert_allclose(totals, [sum(oracle.losses), sum(oracle.norms)], rtol=1e-10)
        np.testing.assert_array_equal(counts, mask.sum((0, 1)))
        assert not gradient.any()


@pytest.mark.kernels
@pytest.mark.parametrize("seed", range(NUM_SEEDS))
def test_delta_steps_go_entry_by_entry(seed):
    rng = np.random.default_rng(seed)
    table = rng.normal(size=(4, 3))
    oracle = DenseTable(table)
    rows, targets, mask = batches(rng, 4, 3, 5, 6)
    errors, counts, totals = np.zeros(3), np.zeros(3), np.zeros(2)
    kernels.delta_steps(table, rows, targets, mask, 0.3, kernels.ALL, errors, counts, totals)
    for u in range(5):
        oracle.delta(rows[u].tolist(), targets[u].tolist(), mask[u].tolist(), 0.3)
    np.testing.assert_allclose(table, oracle.weights, rtol=1e-12)
    np.testing.assert_array_equal(counts, mask.sum((0, 1)))
    assert totals[0] == pytest.approx(errors.sum() / 18)


@pytest.mark.kernels
def test_members_follow_their_own_targets_by_hand():
    rows, mask = np.zeros((1, 1), np.int32), np.array([[[True, True, False]]])
    targets = np.array([[[1.0, -2.0, 5.0]]], np.float32)
    table, errors, counts, totals = np.zeros((1, 3)), np.zeros(3), np.zeros(3), np.zeros(2)
    kernels.delta_steps(table, rows, targets, mask, 0.5, kernels.ACTIVE, errors, counts, totals)
    assert table.tolist() == [[0.5, -1.0, 0.0]]
    assert errors.tolist() == [1.0, 4.0, 0.0]
    assert totals.tolist() == [2.5, 5**0.5]


@pytest.mark.kernels
def test_rmsprop_step_by_hand():
    # decay 0.9, eps 1e-10: the mean square goes 1 -> 0.9 + 0.1 * 4 = 1.3 -> 1.17 + 0.1 * 0.25 = 1.195.
    weights, mean_square = np.array([1.0, 5.0]), np.ones(2)
    kernels.rmsprop_step(weights, np.array([2.0, 0.0]), mean_square, 0.1, 0.9, 1e-10)
    np.testing.assert_allclose(mean_square, [1.3, 0.9], rtol=1e-14)
    np.testing.assert_allclose(weights, [1 - 0.2 / 1.140175425099138, 5.0], rtol=1e-9)
    kernels.rmsprop_step(weights, np.array([-0.5, 0.0]), mean_square, 0.1, 0.9, 1e-10)
    np.testing.assert_allclose(mean_square, [1.195, 0.81], rtol=1e-14)
    np.testing.assert_allclose(weights, [1 - 0.2 / 1.140175425099138 + 0.05 / 1.0931605554537724, 5.0], rtol=1e-9)
