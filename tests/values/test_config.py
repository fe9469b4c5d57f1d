import pytest

from bathysphere.errors import BathysphereError
from bathysphere.values import OptimiserConfig, ValuesConfig


@pytest.mark.parametrize(
    ("kwargs", "message"),
    [
        ({"num_members": 0}, "num_members must be positive"),
        ({"network": "mlp", "hidden": ()}, "hidden must list"),
        ({"conv_kernel": 4}, "must be odd"),
        ({"init_scale": -1.0}, r"values\.init_scale is -1.0; expected at least 0"),
        ({"network": "linear", "shared_trunk": True}, "layers to share"),
        ({"network": "mlp", "hidden": (50,), "shared_trunk": True}, "layers to share"),
        ({"network": "cnn", "global_pooling": True}, "part of residual convolutions"),
    ],
)
def test_values_config_refuses(kwargs, message):
    with pytest.raises(BathysphereError, match=message):
        ValuesConfig(**kwargs)


@pytest.mark.parametrize(
    ("kwargs", "message"),
    [
        ({"learning_rate": 0.0}, "learning_rate must be positive"),
        ({"learning_rate": float("nan")}, "learning_rate must be positive"),
        ({"name": "delta", "learning_rate": 1.5}, "at most 1"),
        ({"decay": 1.0}, "decay must be in"),
        ({"half_life": 0}, "half_life must be at least 1"),
        ({"anneal_over": 0}, "anneal_over is 0"),
        ({"anneal_over": 5, "half_life": 3}, "one of the two"),
        ({"l2": -1.0}, "must not be negative"),
        ({"name": "adam", "weight_decay": -0.1}, "must not be negative"),
        ({"name": "sgd", "weight_decay": 0.1}, "needs optimiser.name adam"),
    ],
)
def test_optimiser_config_refuses(kwargs, message):
    with pytest.raises(BathysphereError, match=message):
        OptimiserConfig(**kwargs)
