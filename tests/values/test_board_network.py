"""The network for boards of any size: blank cells are nothing to it, in floats and in 8-bit integers."""

import pickle

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from bathysphere.agents import agent_file
from bathysphere.agents.card import Card
from bathysphere.agents.loading import load_trained
from bathysphere.config.run import RunConfig
from bathysphere.domains import make_domain
from bathysphere.domains.base import Categories, Features
from bathysphere.domains.sokoban import GeneratorConfig, SokobanConfig
from bathysphere.domains.sokoban.rules import WALL
from bathysphere.errors import BathysphereError
from bathysphere.storage.tensors import halved
from bathysphere.values import Batch, Ensemble, OptimiserConfig, ValuesConfig, network_learner
from bathysphere.values.board_network import build_board_network, by_size
from bathysphere.values.ensemble import num_actions_of
from bathysphere.values.int8_kernels import board_heads, read_out
from tests.oracles import int8 as oracle

BLANK = 2
BOARD = Categories((6, 7), 6, blank=BLANK)
NUM_ACTIONS = 4
OPTIMISER = OptimiserConfig(name="adam", learning_rate=0.01, averaging=0.5)
PRECISIONS = ["float32", "int8"]


def settings(**changes) -> ValuesConfig:
    usual = {"num_members": 3, "conv_layers": 5, "conv_channels": 8, "dense": 7, "policy": True}
    return ValuesConfig("board", **{**usual, **changes})


def make(config: ValuesConfig, optimiser: OptimiserConfig = OPTIMISER, seed: int = 0) -> Ensemble:
    return Ensemble(config, optimiser, BOARD, seed, num_actions=NUM_ACTIONS)


def boards(num: int, seed: int = 0, shape: tuple[int, int] = BOARD.shape) -> np.ndarray:
    """Boards a third of which is blank, whole rows and columns of some among it."""
    rng = np.random.default_rng(seed)
    drawn = rng.integers(BOARD.num_categories, size=(num, *shape)).astype(np.uint8)
    drawn[rng.random(drawn.shape) < 0.2] = BLANK
    drawn[rng.random((num, shape[0])) < 0.1] = BLANK
    return drawn


def draw_batch(config: ValuesConfig, num_updates: int, size: int, seed: int = 0) -> Batch:
    rng = np.random.default_rng(seed)
    observations = boards(num_updates * size, seed).reshape(num_updates, size, *BOARD.shape)
    policy = rng.dirichlet(np.ones(NUM_ACTIONS), size=(num_updates, size)).astype(np.float32)
    targets = rng.normal(size=(num_updates, size, 1)).astype(np.float32)
    mask = rng.random((num_updates, size, config.num_members)) < 0.7
    return Batch(observations, targets, mask, policy if config.policy else None)


def one(batch: Batch, u: int) -> Batch:
    return Batch(*(None if part is None else part[u] for part in batch))


def trained(config: ValuesConfig, seed: int = 0) -> Ensemble:
    """An ensemble that has begun to learn, and whose biases, which begin at zero, are drawn."""
    ensemble, rng = make(config, seed=seed), np.random.default_rng(seed)
    ensemble.update_many(draw_batch(config, 2, 8, seed))
    weights = ensemble.weights()
    for name, array in weights.items():
        if "bias" in name:
            array[:] = rng.normal(scale=0.3, size=array.shape)
    ensemble.load_weights(weights)
    return ensemble


def said(ensemble: Ensemble, observations: np.ndarray) -> np.ndarray:
    """Values and policies in one array, [n, E, 1 + A]."""
    values, policies = ensemble.policies(observations)
    np.testing.assert_array_equal(values, ensemble.evaluate(observations))
    return np.concatenate([values[:, :, None], policies], axis=2)


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


# Learning.


def plain_loss(ensemble: Ensemble, batch: Batch, normalise: str, policy_weight: float) -> float:
    """The objective as the help of its settings says it, from what members say before the update."""
    values, policies = (part.astype(np.float64) for part in ensemble.policies(batch.observations))
    squared = (values - batch.targets) ** 2 * batch.mask
    counts = np.maximum(batch.mask.sum(0), 1)
    size = {"all": batch.mask.size, "active": max(batch.mask.sum(), 1), "member": counts}[normalise]
    surprise = -(batch.policy[:, None] * np.log(policies)).sum(2) * batch.mask
    return (squared.sum(0) / size).sum() + policy_weight * (surprise.sum(0) / counts).sum()


@pytest.mark.parametrize("normalise", ["all", "active", "member"])
@pytest.mark.parametrize("policy_weight", [0.0, 0.3])
def test_the_loss_is_squared_errors_and_cross_entropy(normalise, policy_weight):
    ensemble = make(settings(), OptimiserConfig("sgd", 0.01, normalise=normalise, policy_weight=policy_weight))
    batch = one(draw_batch(settings(), 1, 12), 0)
    batch.mask[:, 1] = False
    batch.policy[3] = 0  # nothing to learn
    expected = plain_loss(ensemble, batch, normalise, policy_weight)
    stats = ensemble.update(batch)
    assert stats.loss == pytest.approx(expected, rel=1e-4)
    assert np.isnan(stats.member_losses[1])


@pytest.mark.parametrize("name", ["tf_rmsprop", "sgd", "adam", "rmsprop"])
def test_steps_lower_the_loss(name):
    ensemble = make(settings(), OptimiserConfig(name, 1e-3 if name in ("adam", "rmsprop") else 1e-2))
    batch = one(draw_batch(settings(), 1, 16), 0)
    losses = [ensemble.update(batch).loss for _ in range(30)]
    assert losses[-1] < 0.97 * losses[0]
    assert losses[-1] < losses[15] < losses[0]


@pytest.mark.parametrize("what", ["values", "policies", "both"])
def test_masks_decide_which_members_learn(what):
    ensemble = make(settings(), OptimiserConfig("sgd", 0.1, policy_weight=0.0 if what == "values" else 1.0))
    batch = one(draw_batch(settings(), 1, 16), 0)
    batch.mask[:] = [True, False, True]
    if what == "policies":  # nothing to learn about values, which are right already
        batch = batch._replace(targets=ensemble.evaluate(batch.observations))
    before = ensemble.weights()
    ensemble.update(batch)
    after = ensemble.weights()
    for name in ("hidden.weight", "hidden.bias", "last.weight", "last.bias"):
        moved = [not np.array_equal(before[f"network.{name}"][e], after[f"network.{name}"][e]) for e in range(3)]
        assert moved == [True, False, True], name
    moved = before["network.last.bias"] != after["network.last.bias"]  # [E, 1 + A, 1]
    assert moved[[0, 2], 1:].any() == (what != "values")
    assert np.array_equal(before["network.weights.0"], after["network.weights.0"]) is False


def test_where_there_is_no_policy_to_learn_none_is_learnt():
    ensemble, other = (make(settings(), OptimiserConfig("sgd", 0.1, policy_weight=w)) for w in (1.0, 0.0))
    batch = one(draw_batch(settings(), 1, 16), 0)
    for one_of_two in (ensemble, other):
        one_of_two.update(batch._replace(policy=np.zeros_like(batch.policy)))
    for name, array in ensemble.weights().items():
        np.testing.assert_array_equal(array, other.weights()[name])


def rule_boards(num: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Boards of floor (5) and blanks with one mark, and which of four it is: 0, 1, 3 or 4."""
    rng = np.random.default_rng(seed)
    codes = np.where(rng.random((num, *BOARD.shape)) < 0.3, BLANK, 5).astype(np.uint8)
    marks = rng.integers(NUM_ACTIONS, size=num)
    flat = codes.reshape(num, -1)
    flat[np.arange(num), rng.integers(flat.shape[1], size=num)] = np.array([0, 1, 3, 4])[marks]
    return codes, marks


@pytest.mark.parametrize("precision", PRECISIONS)
def test_a_policy_learns_a_rule(precision):
    config = settings(conv_layers=3, dense=32, precision=precision)
    ensemble, shape = make(config, OptimiserConfig("adam", 0.01)), (100, 32)
    codes, marks = rule_boards(100 * 32, 0)
    policy = np.eye(NUM_ACTIONS, dtype=np.float32)[marks].reshape(*shape, NUM_ACTIONS)
    targets, mask = marks.reshape(*shape, 1).astype(np.float32), np.ones((*shape, 3), np.bool_)
    ensemble.update_many(Batch(codes.reshape(*shape, *BOARD.shape), targets, mask, policy))
    codes, marks = rule_boards(300, 1)
    values, policies = ensemble.policies(codes)
    assert (policies.argmax(2) == marks[:, None]).mean() > 0.95
    assert np.abs(values - marks[:, None]).mean() < 0.3


def test_l2_counts_the_trunk_once_and_heads_per_member():
    trunk = 5 + 5 + 2 + 2  # weights, biases, what cells are told, and what heads read
    assert make(settings())._learner._network.num_tensors() == trunk + 3 * 4
    assert make(settings(num_members=1))._learner._network.num_tensors() == trunk + 4


# Saved, copied and sent.


@pytest.mark.parametrize("precision", PRECISIONS)
@pytest.mark.parametrize("policy", [True, False])
def test_resume_continues_bit_for_bit(precision, policy):
    config = settings(precision=precision, policy=policy)
    ensemble, other = make(config, seed=1), make(config, seed=2)
    batch = draw_batch(config, 9, 8)
    ensemble.update_many(Batch(*(None if part is None else part[:4] for part in batch)))
    other.load_state_dict(ensemble.state_dict())
    for u in range(4, 9):
        stats, other_stats = ensemble.update(one(batch, u)), other.update(one(batch, u))
        assert (stats.loss, stats.gradient_norm) == (other_stats.loss, other_stats.gradient_norm)
    probe = boards(30, 11)
    np.testing.assert_array_equal(other._learner.outputs(probe), ensemble._learner.outputs(probe))
    saved, expected = other.state_dict(), ensemble.state_dict()
    assert saved.keys() == expected.keys()
    for name, array in saved.items():
        np.testing.assert_array_equal(array, expected[name])


@pytest.mark.parametrize("precision", PRECISIONS)
def test_update_many_is_updates_in_order(precision):
    config = settings(precision=precision)
    together, apart = make(config), make(config)
    batch = draw_batch(config, 4, 8)
    stats = together.update_many(batch)
    parts = [apart.update(one(batch, u)) for u in range(4)]
    assert stats.loss == pytest.approx(np.mean([part.loss for part in parts]), rel=1e-5)
    for name, array in together.state_dict().items():
        np.testing.assert_array_equal(array, apart.state_dict()[name])


@pytest.mark.parametrize("precision", PRECISIONS)
def test_weights_and_snapshots(precision):
    ensemble, other = (trained(settings(precision=precision), seed) for seed in (0, 1))
    states = boards(30, 12)
    before, snapshot = said(ensemble, states), ensemble.snapshot()
    ensemble.update_many(draw_batch(settings(), 5, 8, 3))
    after = said(ensemble, states)
    assert not np.array_equal(before, after)
    np.testing.assert_array_equal(said(snapshot, states), before)
    snapshot.load_weights(other.weights())
    np.testing.assert_array_equal(said(snapshot, states), said(other, states))
    np.testing.assert_array_equal(said(ensemble, states), after)


@pytest.mark.parametrize("precision", PRECISIONS)
def test_it_can_be_sent_to_another_process(precision):
    ensemble, states = trained(settings(precision=precision)), boards(30, 13)
    sent = pickle.loads(pickle.dumps(ensemble))
    np.testing.assert_array_equal(said(sent, states), said(ensemble, states))
    batch = one(draw_batch(settings(), 1, 8), 0)
    for one_of_two in (sent, ensemble):
        one_of_two.update(batch)
    np.testing.assert_array_equal(said(sent, states), said(ensemble, states))


def test_learning_is_not_rounded():
    rounded, exact = trained(settings(precision="int8")), trained(settings())
    for name, array in rounded.state_dict().items():
        np.testing.assert_array_equal(array, exact.state_dict()[name])


@pytest.mark.parametrize("policy", [True, False])
def test_an_agent_file_knows_which_cells_are_blank(policy, tmp_path):
    world = SokobanConfig(generator=GeneratorConfig(6, 6, num_boxes=1, max_states=2000), num_boards=1)
    config = RunConfig(domain=world, values=settings(policy=policy, precision="int8"))
    domain = make_domain(world)
    observation, num_actions = domain.observation, len(domain.action_names)
    ensemble = Ensemble(config.values, config.optimiser, observation, 3, num_actions=num_actions)
    weights, path = halved(ensemble.weights()), tmp_path / "a.safetensors"
    agent_file.write(path, config, observation, Card("command", 0, None, 1, 1.0, "machine"), weights)
    assert agent_file.read(path).observation.blank == observation.blank == WALL
    assert num_actions_of(agent_file.read(path).weights) == (num_actions if policy else 1)
    loaded = load_trained(path).values
    ensemble.load_weights({name: array.astype(np.float32) for name, array in weights.items()})
    boards_ = domain.observe(domain.initial(3, np.random.default_rng(0)))
    np.testing.assert_array_equal(loaded._learner.outputs(boards_), ensemble._learner.outputs(boards_))
    assert loaded.has_policy == policy


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
