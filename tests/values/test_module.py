"""The ensemble as a plain PyTorch module says what `evaluate` does."""

import numpy as np
import pytest
import torch

from bathysphere.domains.base import Categories, Features
from bathysphere.values import Batch, Ensemble, OptimiserConfig, ValuesConfig

CELL, BOARD, NUMBERS = Categories((1,), 30), Categories((5, 6), 4, blank=0), Features(7)
KINDS = {
    "table": (CELL, {"bias": False, "prior_scale": 2.0}, "delta"),
    "linear": (NUMBERS, {}, "adam"),
    "mlp": (NUMBERS, {"network": "mlp", "hidden": (8, 9)}, "adam"),
    "mlp on a board, prior": (BOARD, {"network": "mlp", "hidden": (8,), "prior_scale": 3.0}, "sgd"),
    "shared trunk": (BOARD, {"network": "mlp", "hidden": (8, 9), "shared_trunk": True}, "adam"),
    "cnn": (BOARD, {"network": "cnn", "conv_layers": 3, "conv_channels": 4, "dense": 8, "prior_scale": 1.0}, "adam"),
    "towers": (BOARD, {"network": "cnn", "conv_layers": 1, "dense": 8, "num_members": 1, "num_towers": 2}, "adam"),
    "board": (BOARD, {"network": "board", "conv_layers": 3, "conv_channels": 4, "dense": 8, "policy": True}, "adam"),
}


def observations(spec, n):
    rng = np.random.default_rng(1)
    if isinstance(spec, Features):
        return rng.normal(size=(n, spec.size)).astype(np.float32)
    return rng.integers(spec.num_categories, size=(n, *spec.shape), dtype=np.uint8)


@pytest.mark.parametrize("kind", KINDS)
def test_it_says_what_the_ensemble_says(kind):
    spec, settings, optimiser = KINDS[kind]
    config = ValuesConfig(**{"num_members": 3, **settings})
    values = Ensemble(config, OptimiserConfig(name=optimiser, learning_rate=0.05), spec, 0, num_actions=2)
    seen = observations(spec, 20)
    policy = np.full((20, 2), 0.5, np.float32) if config.policy else None
    values.update(Batch(seen, np.ones((20, 1)), np.ones((20, config.num_members), np.bool_), policy))
    module, before = values.module(), values.evaluate(seen)
    for dtype in (torch.float32, torch.float64, None):
        inputs = torch.from_numpy(seen).to(dtype) if dtype else torch.from_numpy(seen)
        with torch.no_grad():
            told = module(inputs)
        assert told.dtype == torch.float32
        np.testing.assert_allclose(told.numpy(), before, rtol=1e-4, atol=1e-5)
    values.update(Batch(seen, np.zeros((20, 1)), np.ones((20, config.num_members), np.bool_), policy))
    with torch.no_grad():
        np.testing.assert_allclose(module(torch.from_numpy(seen)).numpy(), before, rtol=1e-4, atol=1e-5)
    module(torch.from_numpy(seen)).sum().backward()
    assert any(p.grad is not None and p.grad.abs().sum() > 0 for p in module.parameters())
