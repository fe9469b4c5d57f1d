"""Members of a convolutional ensemble that learn from different entries do not look at each other's."""

import numpy as np
import pytest
import torch

from bathysphere.domains.base import Categories, Features
from bathysphere.learning.masks import split_mask
from bathysphere.values import Batch, Ensemble, OptimiserConfig, ValuesConfig
from bathysphere.values.networks import ValueNetwork, build_network

BOARD = Categories((4, 5), 6)
CNN = ValuesConfig("cnn", num_members=3, conv_layers=3, conv_channels=4, dense=5, residual=True, prior_scale=0.5)


def draw_mask(kind: str, num_updates: int, rng: np.random.Generator) -> np.ndarray:
    if kind == "split":
        return np.broadcast_to(split_mask(5, 8, 3), (num_updates, 13, 3)).copy()
    if kind == "one member only":
        return np.broadcast_to(np.array([False, True, False]), (num_updates, 13, 3)) & (rng.random((13, 1)) < 0.5)
    if kind == "no member":
        return np.zeros((num_updates, 13, 3), np.bool_)
    return rng.random((num_updates, 13, 3)) < 0.3


@pytest.mark.parametrize("kind", [{}, {"residual": True}, {"residual": True, "global_pooling": True}])
def test_own_boards_are_seen_like_common_ones(kind):
    network = build_network(
        ValuesConfig("cnn", 3, conv_layers=4, conv_channels=4, dense=5, **kind),
        BOARD,
        np.random.default_rng(0),
        1.0,
    )
    codes = torch.from_numpy(np.random.default_rng(1).integers(6, size=(3, 7, 4, 5)))
    together = network(codes)
    assert together.shape == (7, 3)
    for member in range(3):
        torch.testing.assert_close(together[:, member], network(codes[member])[:, member])


@pytest.mark.parametrize("normalise", ["all", "active", "member"])
@pytest.mark.parametrize("num_targets", [1, 3])
@pytest.mark.parametrize("kind", ["split", "bernoulli", "one member only", "no member"])
def test_learning_is_the_same_as_from_all_entries(kind, num_targets, normalise, monkeypatch):
    rng = np.random.default_rng(3)
    targets = rng.normal(size=(4, 13, num_targets)).astype(np.float32)
    codes = rng.integers(6, size=(4, 13, 4, 5)).astype(np.uint8)
    batch = Batch(codes, targets, draw_mask(kind, 4, rng))
    settings = OptimiserConfig("sgd", 0.01, l2=0.1, normalise=normalise)
    apart, together = (Ensemble(CNN, settings, BOARD, 0) for _ in range(2))
    left = apart.update_many(batch)
    monkeypatch.setattr(ValueNetwork, "can_part", False)
    right = together.update_many(batch)
    assert left.loss == pytest.approx(right.loss, rel=1e-5)
    assert left.gradient_norm == pytest.approx(right.gradient_norm, rel=1e-5)
    np.testing.assert_allclose(left.member_losses, right.member_losses, rtol=1e-5)
    for name, value in apart.state_dict().items():
        np.testing.assert_allclose(value, together.state_dict()[name], rtol=1e-4, atol=1e-6)


def test_which_networks_can_part():
    def can_part(config, observation=BOARD):
        return build_network(config, observation, np.random.default_rng(0), 1.0).can_part

    assert can_part(CNN)
    assert not can_part(ValuesConfig("cnn", 3, conv_channels=4, shared_trunk=True))
    assert not can_part(ValuesConfig("mlp", 3))
    assert not can_part(ValuesConfig("linear", 3), Features(5))
