"""What the network for boards learns, and how it is saved, copied and sent."""

import pickle

import numpy as np
import pytest

from bathysphere.agents import agent_file
from bathysphere.agents.card import Card
from bathysphere.agents.loading import load_trained
from bathysphere.config.run import RunConfig
from bathysphere.domains import make_domain
from bathysphere.domains.sokoban import GeneratorConfig, SokobanConfig
from bathysphere.domains.sokoban.rules import WALL
from bathysphere.storage.tensors import halved
from bathysphere.values import Batch, Ensemble, OptimiserConfig
from bathysphere.values.ensemble import num_actions_of
from tests.values.boards import (
    BLANK,
    BOARD,
    NUM_ACTIONS,
    PRECISIONS,
    boards,
    draw_batch,
    make,
    one,
    said,
    settings,
    trained,
)

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
