"""The network for boards of any size: blank cells are nothing to it, in floats and in 8-bit integers."""

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from bathysphere.domains.base import Categories, Features
from bathysphere.errors import BathysphereError
from bathysphere.values import Ensemble, OptimiserConfig, ValuesConfig, network_learner
from bathysphere.values.board_network import build_board_network, by_size
from bathysphere.values.int8_kernels import board_heads, read_out
from tests.oracles import int8 as oracle
from tests.values.boards import (
    BLANK,
    BOARD,
    NUM_ACTIONS,
    OPTIMISER,
    PRECISIONS,
    boards,
    draw_batch,
    make,
    said,
    settings,
    trained,
)


def surrounded(board: np.ndarray, rng: np.random.Generator, most: int = 6) -> np.ndarray:
    """A board with up to so many blank rows and columns on each side."""
    return np.pad(board, rng.integers(most + 1, size=(2, 2)), constant_values=BLANK)


# What blank cells are.


@pytest.mark.parametrize("precision", PRECISIONS)
@pytest.mark.parametrize("kernel", [1, 3, 5])
def test_blank_cells_around_a_board_change_no_bit(precision, kernel):
    ensemble, rng = trained(settings(precision=precision, conv_kernel=kernel)), np.random.default_rng(1)
    for board in boards(15, 1):
        alone = said(ensemble, board[None])
        for _ in range(3):
            wider = surrounded(board, rng)
            np.testing.assert_array_equal(said(ensemble, wider[None]), alone)
        # Shifted within a larger one: into every corner.
        room = np.pad(board, ((5, 5), (5, 5)), constant_values=BLANK)
        for shift in ((-5, -5), (-5, 5), (5, -5), (5, 5)):
            np.testing.assert_array_equal(said(ensemble, np.roll(room, shift, axis=(0, 1))[None]), alone)


@pytest.mark.parametrize("precision", PRECISIONS)
def test_a_batch_of_boards_may_be_surrounded_together(precision):
    ensemble, states = trained(settings(precision=precision)), boards(40, 2)
    wider = np.pad(states, ((0, 0), (3, 1), (0, 4)), constant_values=BLANK)
    np.testing.assert_array_equal(said(ensemble, wider), said(ensemble, states))


def test_a_cell_that_is_not_blank_does_matter():
    ensemble, states = trained(settings()), boards(10, 3)
    wider = np.pad(states, ((0, 0), (1, 1), (1, 1)), constant_values=BLANK)
    other = np.pad(states, ((0, 0), (1, 1), (1, 1)), constant_values=0)
    assert (np.abs(said(ensemble, wider) - said(ensemble, other)) > 1e-3).any(axis=(1, 2)).all()


@pytest.mark.parametrize("precision", PRECISIONS)
def test_boards_of_mixed_sizes_give_what_each_gives_alone(precision):
    ensemble, rng = trained(settings(precision=precision)), np.random.default_rng(4)
    small = [boards(1, seed, tuple(rng.integers(1, 14, size=2)))[0] for seed in range(40)]
    canvas = np.full((len(small), 20, 18), BLANK, np.uint8)
    for board, place in zip(small, canvas, strict=True):
        (height, width), (top, left) = board.shape, rng.integers(5, size=2)
        place[top : top + height, left : left + width] = board
    together = said(ensemble, canvas)
    alone = np.concatenate([said(ensemble, board[None]) for board in small])
    if precision == "int8":
        np.testing.assert_array_equal(together, alone)
    else:
        np.testing.assert_allclose(together, alone, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("precision", PRECISIONS)
def test_a_board_of_nothing_but_blanks_has_a_value(precision):
    ensemble = trained(settings(precision=precision))
    first = said(ensemble, np.full((1, 1, 1), BLANK, np.uint8))
    assert np.isfinite(first).all()
    with_others = boards(3, 5)
    with_others[1] = BLANK
    np.testing.assert_array_equal(said(ensemble, with_others)[1], first[0])


def test_boards_are_sorted_by_size():
    codes = torch.from_numpy(np.concatenate([boards(30, 6, (9, 12)), np.full((2, 9, 12), BLANK, np.uint8)]))
    codes[::3, 4:] = BLANK
    codes[::5, :, 5:] = BLANK
    parts = list(by_size(codes, BLANK))
    assert len(parts) > 3
    assert sorted(torch.cat([rows for rows, _ in parts]).tolist()) == list(range(len(codes)))
    for rows, cut in parts:
        assert len(rows) == len(cut)
        for row, board in zip(rows.tolist(), cut, strict=True):
            assert (board != BLANK).sum() == (codes[row] != BLANK).sum()  # only blanks were cut off
        # Not one row or column more than the boards together need.
        is_cell = (cut != BLANK).any(0)
        assert not is_cell.any() or (is_cell.any(1)[[0, -1]].all() and is_cell.any(0)[[0, -1]].all())


# Against slow twins.


@pytest.mark.parametrize("precision", PRECISIONS)
@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"policy": False},
        {"conv_layers": 1},
        {"conv_kernel": 1},
        {"conv_kernel": 5, "conv_layers": 3},
        {"num_members": 1, "conv_channels": 3, "dense": 1},
    ],
    ids=str,
)
def test_outputs_are_those_of_the_slow_twin(changes, precision):
    config = settings(precision=precision, **changes)
    ensemble, states = trained(config), boards(8, 7)
    states[0] = BLANK
    states[1, 2:] = BLANK
    outputs = ensemble._learner.outputs(states)
    assert outputs.dtype == np.float32
    assert outputs.shape == (8, config.num_members, 1 + (NUM_ACTIONS if config.policy else 0))
    rounded, weights = precision == "int8", ensemble.weights()
    expected = [oracle.board_outputs(weights, board, BOARD.num_categories, BLANK, rounded) for board in states]
    np.testing.assert_allclose(outputs, expected, rtol=1e-4, atol=2e-5)


def test_rounding_is_small():
    config = settings(conv_channels=32, conv_layers=7)
    exact = trained(config)
    rounded = make(settings(conv_channels=32, conv_layers=7, precision="int8"), seed=1)
    rounded.load_weights(exact.weights())
    states = boards(300, 8)
    expected = exact._learner.outputs(states)
    error = rounded._learner.outputs(states) - expected
    assert 0 < np.sqrt(np.mean(error**2)) < 0.03 * expected.std()


def test_where_it_cannot_be_exact_it_plays_in_floats(monkeypatch):
    monkeypatch.setattr(network_learner, "is_exact_here", lambda: False)
    states = boards(10)
    exact = said(trained(settings()), states)
    np.testing.assert_array_equal(said(trained(settings(precision="int8")), states), exact)


floats = st.floats(-100, 100, width=32)


@pytest.mark.kernels
@given(
    arrays(np.float32, (2, 6, 3), elements=floats),
    arrays(np.float32, 2, elements=st.floats(0, 10, width=32)),
    arrays(np.bool_, (2, 6)),
    arrays(np.float32, 3, elements=floats),
)
def test_what_heads_read_is_sums_and_maxima_over_the_floor(products, scales, floor, bias):
    pooled = np.full((2, 6), 7, np.float32)
    read_out(products, scales, floor, bias, 0.25, pooled)
    exact = np.maximum(products * scales[:, None, None].astype(np.float64) + bias, 0) * floor[:, :, None]
    np.testing.assert_allclose(pooled[:, :3], exact.sum(1) * 0.25, rtol=1e-4, atol=1e-2)
    np.testing.assert_allclose(pooled[:, 3:], exact.max(1), rtol=1e-4, atol=1e-3)


@pytest.mark.kernels
def test_heads_are_a_hidden_layer_and_sums():
    rng = np.random.default_rng(0)
    pooled, hidden = rng.normal(size=(5, 8)).astype(np.float32), rng.normal(size=(8, 6)).astype(np.float32)
    pooled[0] = 0
    hidden_bias, last = rng.normal(size=6).astype(np.float32), rng.normal(size=(3, 4, 2)).astype(np.float32)
    last_bias, outputs = rng.normal(size=(3, 4)).astype(np.float32), np.empty((5, 3, 4), np.float32)
    board_heads(pooled, hidden, hidden_bias, last, last_bias, outputs)
    units = np.maximum(pooled.astype(np.float64) @ hidden + hidden_bias, 0).reshape(5, 3, 2)
    expected = np.einsum("neu,eou->neo", units, last) + last_bias
    np.testing.assert_allclose(outputs, expected, rtol=1e-4, atol=1e-5)


# What is asked of it.


@pytest.mark.parametrize("precision", PRECISIONS)
def test_policies_are_probabilities_and_their_mean_guides(precision):
    ensemble, states = trained(settings(precision=precision)), boards(700, 9)  # more than are evaluated at once
    values, policies = ensemble.policies(states)
    assert (values.shape, policies.shape) == ((700, 3), (700, 3, NUM_ACTIONS))
    assert values.dtype == policies.dtype == np.float32
    assert (policies > 0).all()
    np.testing.assert_allclose(policies.sum(2), 1, rtol=1e-5)
    assert policies.std(0).min() > 1e-3  # boards differ,
    assert policies.std(1).max() > 1e-3  # and members
    again, guide = ensemble.evaluate_with_policy(states)
    np.testing.assert_array_equal(again, values)
    np.testing.assert_array_equal(guide, policies.mean(1))


@pytest.mark.parametrize("precision", PRECISIONS)
def test_no_observations(precision):
    ensemble, nothing = make(settings(precision=precision)), boards(0)
    assert ensemble.evaluate(nothing).shape == (0, 3)
    values, policy = ensemble.evaluate_with_policy(nothing)
    assert (values.shape, policy.shape) == ((0, 3), (0, NUM_ACTIONS))
    assert values.dtype == policy.dtype == np.float32


@pytest.mark.parametrize("precision", PRECISIONS)
def test_codes_of_any_integer_type_and_memory(precision):
    ensemble, states = trained(settings(precision=precision)), boards(20, 10)
    expected = said(ensemble, states)
    fixed = states.copy()
    fixed.flags.writeable = False
    for same in (states.astype(np.int32), states.astype(np.int64), np.asfortranarray(states), fixed):
        np.testing.assert_array_equal(said(ensemble, same), expected)
    np.testing.assert_array_equal(said(ensemble, states[::-1])[::-1], expected)
    np.testing.assert_array_equal(said(ensemble, states[:, ::-1, ::-1]), said(ensemble, states[:, ::-1, ::-1].copy()))


@pytest.mark.parametrize("precision", PRECISIONS)
@pytest.mark.parametrize(
    "layer",
    ["weights.0", "weights.2", "biases.1", "pooled_weights.0", "readout", "readout_bias", "hidden.weight", "last.bias"],
)
@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_what_is_not_a_number_is_not_hidden(layer, bad, precision):
    ensemble = trained(settings(precision=precision))
    weights = ensemble.weights()
    weights[f"network.{layer}"][:] = bad
    ensemble.load_weights(weights)
    assert not np.isfinite(ensemble.evaluate(boards(5))).any()


# What is refused.


@pytest.mark.parametrize(
    "observation", [Features(5), Categories((5,), 6, blank=0), Categories((4, 5), 6), Categories((2, 3, 4), 6, blank=0)]
)
def test_other_observations(observation):
    with pytest.raises(BathysphereError, match=r"board reads a two-dimensional board of categories, one of them blank"):
        build_board_network(settings(), observation, NUM_ACTIONS, np.random.default_rng(0), 1.0)
    with pytest.raises(BathysphereError, match=r"one of them blank.*use mlp or cnn"):
        Ensemble(settings(), OPTIMISER, observation, 0, num_actions=NUM_ACTIONS)


@pytest.mark.parametrize("changes", [{"conv_layers": 4}, {"prior_scale": 0.5}, {"bias": False}], ids=str)
def test_settings_it_does_not_have(changes):
    with pytest.raises(BathysphereError, match="board has an odd number of convolutions, biases and no prior; got"):
        settings(**changes)


def test_towers_of_it():
    with pytest.raises(BathysphereError, match="num_towers"):
        settings(num_members=1, num_towers=2)


@pytest.mark.parametrize("network", ["linear", "mlp", "cnn"])
def test_a_policy_on_another_network(network):
    with pytest.raises(BathysphereError, match=rf"values\.policy needs values\.network board, got {network}"):
        ValuesConfig(network, policy=True)


def test_a_policy_of_no_actions():
    with pytest.raises(BathysphereError, match=r"num_actions is 0; pass len\(domain\.action_names\)"):
        Ensemble(settings(), OPTIMISER, BOARD, 0)


def test_a_policy_that_is_not_there():
    ensemble = make(settings(policy=False))
    for ask in (ensemble.policies, ensemble.evaluate_with_policy):
        with pytest.raises(BathysphereError, match=r"no policy\. Train with values\.policy"):
            ask(boards(2))


def test_policy_targets_that_do_not_fit():
    ensemble, silent = make(settings()), make(settings(policy=False))
    batch = draw_batch(settings(), 2, 8)
    for misfit in (None, batch.policy[:, :, :3], batch.policy[:, :5], batch.policy[0]):
        with pytest.raises(BathysphereError, match=r"policy targets have shape .*; expected \(2, 8, 4\)"):
            ensemble.update_many(batch._replace(policy=misfit))
    with pytest.raises(BathysphereError, match=r"\(2, 8, 4\); expected none, since these values have no policy"):
        silent.update_many(batch)


@pytest.mark.parametrize("shape", [(3, 6), (3, 6, 0), (3, 6, 7, 1)])
def test_what_is_no_board(shape):
    with pytest.raises(BathysphereError, match="observations have shape"):
        make(settings()).evaluate(np.zeros(shape, np.uint8))


def test_codes_beyond_the_categories():
    with pytest.raises(BathysphereError, match="expected 0 to 5"):
        make(settings()).evaluate(np.full((1, 3, 3), 6, np.uint8))


def test_weights_of_another_network():
    ensemble = make(settings())
    with pytest.raises(BathysphereError, match="the saved values hold"):
        ensemble.load_weights(make(settings(policy=False)).weights())


def test_a_negative_weight_of_the_policy():
    with pytest.raises(BathysphereError, match=r"optimiser\.policy_weight must not be negative"):
        OptimiserConfig(policy_weight=-1.0)
