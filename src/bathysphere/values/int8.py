"""Playing with 8-bit integers: a residual network of boards, rounded, evaluated in half the time.

Every board has a scale of its own in every layer, set by its largest activation. So a value depends on the weights
and the board alone, not on what else is in the batch, and nothing has to be calibrated. Sums are exact, also on
processors that add products of bytes in 16 bits: see `WEIGHT_LEVELS`.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from bathysphere.values.board_network import SUM_SCALE, BoardNetwork, by_size
from bathysphere.values.int8_kernels import add_and_round, board_heads, head_values, read_out, rectify_and_round
from bathysphere.values.networks import ConvolutionStack, Dense, ValueNetwork

# Weights are rounded to at most the first of these, times a scale for each output; activations to at most the second.
# The sum of two products then fits in 16 bits, where such processors would cut it off: 2 * 90 * 180 < 32,768.
WEIGHT_LEVELS, ACTIVATION_LEVELS = 90, 180

# Of an operation's output: scale, zero and type, and that nothing else is done to it.
_FLOAT_OUT: tuple[Any, ...] = 1.0, 0, torch.float32, "none", [], ""

Array = NDArray[Any]


@cache
def is_exact_here() -> bool:
    """Whether this PyTorch on this processor has the operations, and they add up the largest numbers exactly."""
    weight, board = torch.full((8, 8, 3, 3), 1.0), np.full((1, 9, 8), ACTIVATION_LEVELS, np.uint8)
    try:
        middle = _Convolution(weight)(board, 3)[0, 4]
        product = _Product(weight.flatten(1))(np.full((1, 72), ACTIVATION_LEVELS, np.uint8))[0]
    except (AttributeError, RuntimeError, TypeError):  # not built in, not for this processor, or called differently
        return False
    return bool(np.allclose([middle, product], 72 * ACTIVATION_LEVELS, rtol=1e-6))


class Int8Network:
    """What a `ValueNetwork` of residual convolutions and heads computes, rounded. It does not follow later updates.

    Args:
      network: the network; see `ValuesConfig.precision` for which it may be.
    """

    def __init__(self, network: ValueNetwork) -> None:
        stack, hidden, last = network.layers
        assert isinstance(stack, ConvolutionStack)
        assert isinstance(hidden, Dense)
        assert isinstance(last, Dense)
        with torch.inference_mode():
            self._num_categories = stack.num_categories
            self._trunk = _Trunk(stack.weights, stack.biases, [weight[:, :, 0, 0] for weight in stack.pooled_weights])
            members, units, inputs = hidden.weight.shape
            # Boards are kept channels last, and the network's own are channels first.
            channels = len(stack.weights[0])
            by_cell = hidden.weight.view(members * units, channels, -1).transpose(1, 2).reshape(-1, inputs)
            self._hidden = _Product(by_cell)
            self._hidden_bias = _bias(hidden)
            self._last_weight = _array(last.weight[:, 0])
            self._last_bias = _bias(last)

    def evaluate(self, codes: Array) -> NDArray[np.float32]:
        """Returns float32 [n, E] for boards of categories [n, H, W]."""
        one_hot = (codes.reshape(len(codes), -1, 1) == np.arange(self._num_categories)).view(np.uint8)
        with torch.inference_mode():
            rounded, scales = self._trunk.run(one_hot, np.ones(one_hot.shape[:2], np.bool_), codes.shape[1])
            products = self._hidden(rounded.reshape(len(codes), -1))
        return head_values(products, scales, self._hidden_bias, self._last_weight, self._last_bias)


class Int8BoardNetwork:
    """What a `BoardNetwork` computes, with rounded convolutions. It does not follow later updates."""

    def __init__(self, network: BoardNetwork) -> None:
        with torch.inference_mode():
            self._blank = network.blank
            self._seen = np.delete(np.arange(network.num_categories), network.blank)
            self._trunk = _Trunk(network.weights, network.biases, network.pooled_weights)
            self._readout, self._readout_bias = _Convolution(network.readout), _array(network.readout_bias)
            self._hidden = _array(network.hidden.weight.flatten(0, 1).t())
            self._hidden_bias = _bias(network.hidden)
            self._last = _array(network.last.weight)
            self._last_bias = _bias(network.last).reshape(self._last.shape[:2])

    def evaluate(self, codes: Array) -> NDArray[np.float32]:
        """Returns float32 [n, E, 1 + A] for boards of categories [n, H, W]: values, and logits of policies."""
        pooled = np.empty((len(codes), len(self._hidden)), np.float32)
        outputs = np.empty((len(codes), *self._last.shape[:2]), np.float32)
        writable = np.require(codes, requirements=["C", "W"])  # PyTorch warns about other memory, or refuses it
        with torch.inference_mode():
            for rows, boards in by_size(torch.from_numpy(writable), self._blank):
                pooled[rows.numpy()] = self._pool(boards.numpy())
        board_heads(pooled, self._hidden, self._hidden_bias, self._last, self._last_bias, outputs)
        return outputs

    def _pool(self, codes: Array) -> NDArray[np.float32]:
        """Returns what the heads read of boards [n, H, W], float32 [n, 2 R]."""
        cells = codes.reshape(len(codes), -1)
        floor, one_hot = cells != self._blank, (cells[:, :, None] == self._seen).view(np.uint8)
        rounded, scales = self._trunk.run(one_hot, floor, codes.shape[1])
        pooled = np.empty((len(codes), 2 * len(self._readout_bias)), np.float32)
        read_out(self._readout(rounded, codes.shape[1]), scales, floor, self._readout_bias, SUM_SCALE, pooled)
        return pooled


class _Trunk:
    """Residual convolutions with rounded weights, and what every cell is told of its board.

    Args:
      weights: of an odd number of convolutions, [C, inputs, k, k] each.
      biases: [C] each; none at all if convolutions have none.
      pooled_weights: of each block, [C, 2 C]; none at all if cells are told nothing.
    """

    def __init__(self, weights: Iterable[Tensor], biases: Iterable[Tensor], pooled_weights: Iterable[Tensor]) -> None:
        self._convolutions = [_Convolution(weight) for weight in weights]
        self._channels = self._convolutions[0].num_outputs
        nothing = [np.zeros(self._channels, np.float32)] * len(self._convolutions)
        self._biases = [_array(bias) for bias in biases] or nothing
        untold = [np.zeros((0, self._channels), np.float32)] * (len(self._convolutions) // 2)
        self._pooled_weights = [_array(weight.t()) for weight in pooled_weights] or untold

    def run(self, one_hot: Array, floor: Array, height: int) -> tuple[Array, Array]:
        """Returns the rounded activations, uint8 [n, cells, C], and the scale of each board, float32 [n].

        Args:
          one_hot: uint8 [n, cells, inputs].
          floor: bool [n, cells], which cells are not blank.
          height: of the boards.
        """
        shape = (*one_hot.shape[:2], self._channels)
        stream, rounded = np.zeros(shape, np.float32), np.empty(shape, np.uint8)
        scales = np.ones(len(one_hot), np.float32)
        pooled = np.empty((len(one_hot), 2 * self._channels), np.float32)
        convolved = self._convolutions[0](one_hot, height)
        add_and_round(convolved, scales, floor, self._biases[0], ACTIVATION_LEVELS, stream, rounded, pooled)
        for block in range(len(self._convolutions) // 2):
            first, second = 2 * block + 1, 2 * block + 2
            convolved, told = self._convolutions[first](rounded, height), self._pooled_weights[block]
            bias = self._biases[first]
            rectify_and_round(convolved, scales, floor, bias, pooled, told, ACTIVATION_LEVELS, rounded)
            convolved, bias = self._convolutions[second](rounded, height), self._biases[second]
            add_and_round(convolved, scales, floor, bias, ACTIVATION_LEVELS, stream, rounded, pooled)
        return rounded, scales


class _Convolution:
    """Rounded weights of one convolution, [outputs, inputs, k, k], packed."""

    def __init__(self, weight: Tensor) -> None:
        rounded, self._scales = _round(weight)
        self.num_outputs = len(weight)
        self._zeros = torch.zeros(len(weight), dtype=torch.int64)
        self._geometry = [1, 1], [weight.shape[2] // 2] * 2, [1, 1], 1  # stride, padding, dilation, groups
        self._packed = torch.ops.onednn.qconv_prepack(rounded, self._scales, 1.0, 0, *self._geometry, None)

    def __call__(self, cells: Array, height: int) -> NDArray[np.float32]:
        """Returns float32 [n, cells, outputs] for uint8 [n, cells, inputs]: whole numbers times weights' scales."""
        num, num_cells, inputs = cells.shape
        boards = torch.from_numpy(cells).view(num, height, num_cells // height, inputs).permute(0, 3, 1, 2)
        result: Tensor = torch.ops.onednn.qconv2d_pointwise(
            boards, 1.0, 0, self._packed, self._scales, self._zeros, None, *self._geometry, *_FLOAT_OUT
        )
        return result.permute(0, 2, 3, 1).reshape(num, num_cells, -1).numpy()


class _Product:
    """Rounded weights of one matrix product, [outputs, inputs], packed."""

    def __init__(self, weight: Tensor) -> None:
        rounded, self._scales = _round(weight)
        self._zeros = torch.zeros(len(weight), dtype=torch.int64)
        self._packed = torch.ops.onednn.qlinear_prepack(rounded, None)

    def __call__(self, rows: Array) -> NDArray[np.float32]:
        """Returns float32 [n, outputs] for uint8 [n, inputs]: whole numbers times weights' scales."""
        result: Tensor = torch.ops.onednn.qlinear_pointwise(
            torch.from_numpy(rows), 1.0, 0, self._packed, self._scales, self._zeros, None, *_FLOAT_OUT
        )
        return result.numpy()


def _round(weight: Tensor) -> tuple[Tensor, Tensor]:
    """Returns int8 weights and float32 scales, one for each row of the first axis."""
    scales = (weight.flatten(1).abs().amax(1) / WEIGHT_LEVELS).clamp(min=1e-30)
    scales[scales.isinf()] = torch.nan  # so that it shows in every value, as it does in float32
    return (weight / scales.view(-1, *[1] * (weight.dim() - 1))).round().to(torch.int8), scales


def _array(tensor: Tensor) -> NDArray[np.float32]:
    return np.array(tensor.detach().numpy(), np.float32, order="C")


def _bias(layer: Dense) -> NDArray[np.float32]:
    size = layer.weight.shape[0] * layer.weight.shape[1]
    return np.zeros(size, np.float32) if layer.bias is None else _array(layer.bias.flatten())
