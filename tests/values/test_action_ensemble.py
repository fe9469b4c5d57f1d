"""Members that estimate actions: every action of every member learns by itself, or with its trunk."""

import numpy as np
import pytest

from bathysphere.domains.base import Categories, Features
from bathysphere.errors import BathysphereError
from bathysphere.values import Batch, OptimiserConfig, ValuesConfig
from bathysphere.values.action_ensemble import ActionEnsemble

TABLE = Categories((1,), 7)
KINDS = {
    "table": (ValuesConfig(network="linear", num_members=3, bias=False), "delta", TABLE),
    "mlp": (ValuesConfig(network="mlp", num_members=3, hidden=(8,)), "tf_rmsprop", Features(4)),
    "cnn": (ValuesConfig(network="cnn", num_members=3, conv_layers=1, conv_channels=4, dense=8), "adam", Features(0)),
}


def make(kind, seed=0):
    config, optimiser, observation = KINDS[kind]
    if kind == "cnn":
        observation = Categories((4, 4), 3)
    return ActionEnsemble(
        config,
        OptimiserConfig(name=optimiser, learning_rate=0.05, normalise="member"),
        observation,
        seed,
        num_actions=2,
    )


def observations(kind, n, rng):
    if kind == "table":
        return rng.integers(7, size=(n, 1))
    return rng.normal(size=(n, 4)).astype(np.float32) if kind == "mlp" else rng.integers(3, size=(n, 4, 4))


@pytest.mark.parametrize("kind", KINDS)
def test_an_update_moves_the_action_that_was_taken_and_no_other(kind):
    rng = np.random.default_rng(0)
    values, seen = make(kind), observations(kind, 6, rng)
    before = values.evaluate_actions(seen)
    assert before.shape == (6, 2, 3)
    assert before.dtype == np.float32
    mask = np.zeros((1, 6, 3), bool)
    mask[:, :, 1] = True  # one member
    for _ in range(30):
        stats = values.update_many(
            Batch(seen[None], np.full((1, 6, 1), 5.0, np.float32), mask, actions=np.ones((1, 6), int))
        )
    after = values.evaluate_actions(seen)
    is_moved = np.zeros((2, 3), bool)
    is_moved[1, 1] = True
    assert (after[:, ~is_moved] == before[:, ~is_moved]).all()
    assert (np.abs(after[:, is_moved] - 5.0) < np.abs(before[:, is_moved] - 5.0)).all()
    assert np.isfinite(stats.member_losses).tolist() == [False, True, False]
    assert (values.evaluate(seen) == after.max(axis=1)).all()


def test_every_member_may_have_a_target_of_its_own():
    values, row = make("table"), np.full((1, 1, 1), 4)
    targets = np.array([[[1.0, 2.0, 3.0]]], np.float32)
    for _ in range(400):
        values.update_many(Batch(row, targets, np.ones((1, 1, 3), bool), actions=np.zeros((1, 1), int)))
    assert values.evaluate_actions(row[0])[0, 0] == pytest.approx([1, 2, 3], abs=1e-4)


@pytest.mark.parametrize("kind", KINDS)
def test_saved_members_are_the_same(kind):
    rng = np.random.default_rng(1)
    one, other, seen = make(kind), make(kind, seed=5), observations(kind, 4, rng)
    assert (one.evaluate_actions(seen) != other.evaluate_actions(seen)).any()
    other.load_state_dict(one.state_dict())
    assert (one.evaluate_actions(seen) == other.evaluate_actions(seen)).all()
    assert (one.snapshot().evaluate(seen) == one.evaluate(seen)).all()


def test_what_goes_with_values_of_states_only_is_refused():
    config = ValuesConfig(network="board", num_members=2, policy=True)
    with pytest.raises(BathysphereError, match="go with values of states"):
        ActionEnsemble(config, OptimiserConfig(), Categories((4, 4), 3, blank=0), 0, num_actions=2)
