"""Boards of codes and ensembles of the network for them, as its tests use them."""

import numpy as np

from bathysphere.domains.base import Categories
from bathysphere.values import Batch, Ensemble, OptimiserConfig, ValuesConfig

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
