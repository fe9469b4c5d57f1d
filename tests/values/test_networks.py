import numpy as np
import pytest
import torch

from bathysphere.domains.base import Categories, Features
from bathysphere.errors import BathysphereError
from bathysphere.values.config import ValuesConfig
from bathysphere.values.networks import build_network

BOARD = Categories((4, 5), 3)


def one_hot(codes: np.ndarray, num_categories: int) -> np.ndarray:
    return np.eye(num_categories, dtype=np.float32)[codes]


def member_values(network: torch.nn.Module, config: ValuesConfig, inputs: np.ndarray, e: int) -> np.ndarray:
    """Member e alone, an ordinary network on float rows [n, in] (cnn: one-hot boards [n, H, W, C])."""
    h = torch.from_numpy(inputs)
    for i, layer in enumerate(network.layers):
        own = min(e, layer.members - 1)  # of a shared trunk there is only one
        if type(layer).__name__ == "ConvolutionStack":
            channels = config.conv_channels
            rows = slice(own * channels, (own + 1) * channels)
            h = h.permute(0, 3, 1, 2)
            before = h
            for k, weight in enumerate(layer.weights):
                if k % 2:
                    before = h  # of every two convolutions after the first
                h = torch.relu(h) if k else h
                seen = torch.cat([h.mean((2, 3)), h.amax((2, 3))], 1)
                h = torch.nn.functional.conv2d(h, weight[rows], layer.biases[k][rows], padding=1)
                if config.global_pooling and k % 2 and k + 1 < len(layer.weights):
                    h = h + (seen @ layer.pooled_weights[k // 2][rows, :, 0, 0].T)[:, :, None, None]
                if config.residual and k and k % 2 == 0:
                    h = h + before
            h = h.flatten(1)
        elif type(layer).__name__ == "CategoryDense":
            outputs = layer.weight.shape[1] // layer.members
            columns = slice(own * outputs, (own + 1) * outputs)
            h = h @ layer.weight[:, columns]
            h = h if layer.bias is None else h + layer.bias[columns]
        else:
            h = h @ layer.weight[own].T
            h = h if layer.bias is None else h + layer.bias[own, :, 0]
        if i < len(network.layers) - 1:
            h = torch.relu(h)
    return h[:, 0].detach().numpy()


CASES = [
    (ValuesConfig("linear", num_members=3), Features(6)),
    (ValuesConfig("linear", num_members=3, bias=False), BOARD),
    (ValuesConfig("mlp", num_members=3, hidden=(7, 5)), Features(6)),
    (ValuesConfig("mlp", num_members=1, hidden=(7,)), Features(6)),
    (ValuesConfig("mlp", num_members=3, hidden=(7, 5), bias=False), BOARD),
    (ValuesConfig("mlp", num_members=3, hidden=(7, 6, 5), shared_trunk=True), BOARD),
    (ValuesConfig("mlp", num_members=3, hidden=(7, 5), shared_trunk=True), Features(6)),
    (ValuesConfig("cnn", num_members=3, conv_layers=3, conv_channels=4, dense=6), BOARD),
    (ValuesConfig("cnn", num_members=3, conv_layers=2, conv_channels=4, dense=6, shared_trunk=True), BOARD),
    (ValuesConfig("cnn", num_members=2, conv_layers=5, conv_channels=4, dense=6, residual=True), BOARD),
    (ValuesConfig("cnn", num_members=2, conv_layers=4, conv_channels=4, dense=6, residual=True), BOARD),
    (ValuesConfig("cnn", num_members=2, conv_layers=1, conv_channels=4, dense=6, residual=True), BOARD),
    (ValuesConfig("cnn", 2, conv_layers=5, conv_channels=4, dense=6, residual=True, global_pooling=True), BOARD),
    (ValuesConfig("cnn", 2, conv_layers=4, conv_channels=4, dense=6, residual=True, global_pooling=True), BOARD),
]


@pytest.mark.parametrize(("config", "spec"), CASES)
def test_batched_network_is_its_members_one_by_one(config, spec):
    rng = np.random.default_rng(0)
    network = build_network(config, spec, rng, 1.0)
    with torch.no_grad():
        for name, parameter in network.named_parameters():
            if "bias" in name:  # zero biases would hide mistakes in their layout
                parameter.copy_(torch.from_numpy(rng.normal(size=parameter.shape)))
    if isinstance(spec, Features):
        observations = inputs = rng.normal(size=(9, spec.size)).astype(np.float32)
    else:
        observations = rng.integers(spec.num_categories, size=(9, *spec.shape)).astype(np.uint8)
        inputs = one_hot(observations, spec.num_categories)
        inputs = inputs if config.network == "cnn" else inputs.reshape(9, -1)
    training = network(torch.from_numpy(observations)).detach().numpy()
    with torch.inference_mode():
        playing = network(torch.from_numpy(observations)).numpy()
    assert training.shape == (9, config.num_members)
    for e in range(config.num_members):
        expected = member_values(network, config, inputs, e)
        np.testing.assert_allclose(training[:, e], expected, rtol=1e-4, atol=1e-5)
        np.testing.assert_allclose(playing[:, e], expected, rtol=1e-4, atol=1e-5)


def test_paper_sizes():
    board = Categories((10, 10), 7)

    def size(config, spec):
        network = build_network(config, spec, np.random.default_rng(0), 1.0)
        return sum(p.numel() for p in network.parameters())

    assert size(ValuesConfig("cnn", num_members=1), board) == 971_265
    assert size(ValuesConfig("mlp", num_members=20), Features(15)) == 20 * (16 * 50 + 51 * 50 + 51)
    assert size(ValuesConfig("mlp", num_members=2), board) == 2 * (701 * 50 + 51 * 50 + 51)


def test_glorot_start():
    network = build_network(ValuesConfig("mlp", num_members=20), Features(15), np.random.default_rng(0), 1.0)
    first, second, last = (layer.weight.detach().numpy() for layer in network.layers)
    for weights, fans in ((first, 65), (second, 100), (last, 51)):
        limit = (6 / fans) ** 0.5
        assert np.abs(weights).max() <= limit
        assert weights.std() == pytest.approx(limit / 3**0.5, rel=0.05)
    assert all(not layer.bias.any() for layer in network.layers)


def test_init_scale_multiplies_the_spread():
    config, x = ValuesConfig("mlp", num_members=4), torch.ones(1, 3)
    plain, wide = (build_network(config, Features(3), np.random.default_rng(0), scale) for scale in (1.0, 8.0))
    np.testing.assert_allclose(wide(x).detach(), 8 * plain(x).detach(), rtol=1e-5)


def test_l2_counts_tensors_of_separate_networks():
    separate = ValuesConfig("mlp", num_members=3, hidden=(4, 4))
    assert build_network(separate, Features(2), np.random.default_rng(0), 1.0).num_tensors() == 18
    shared = ValuesConfig("mlp", num_members=3, hidden=(4, 4), shared_trunk=True)
    assert build_network(shared, Features(2), np.random.default_rng(0), 1.0).num_tensors() == 2 + 3 * 4


def test_cnn_needs_a_board():
    for spec in (Features(3), Categories((5,), 2)):
        with pytest.raises(BathysphereError, match="use mlp"):
            build_network(ValuesConfig("cnn"), spec, np.random.default_rng(0), 1.0)
