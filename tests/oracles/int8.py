"""A slow, obviously right network of 8-bit integers: one board, large whole numbers, loops over cells."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

Array = np.ndarray
_LEVELS = 90


def rounded_weights(weight: Array) -> tuple[Array, Array]:
    """Whole numbers, and a scale for each output."""
    largest = np.abs(weight.reshape(len(weight), -1)).max(1)
    scales = np.maximum(largest / np.float32(_LEVELS), np.float32(1e-30))
    return np.rint(weight / scales.reshape(-1, *[1] * (weight.ndim - 1))).astype(np.int64), scales


def rounded_board(active: Array) -> tuple[Array, np.float32]:
    """Whole numbers from 0 to twice the weights' levels, and their scale."""
    largest = active.max()
    if largest == 0:
        return np.zeros(active.shape, np.int64), np.float32(0)
    top = np.float32(2 * _LEVELS)
    return np.floor(active * (top / largest) + np.float32(0.5)).astype(np.int64), largest / top


def convolve(board: Array, weight: Array) -> Array:
    """float32 [H, W, outputs] of whole numbers [H, W, inputs] and float weights [outputs, inputs, k, k]."""
    whole, scales = rounded_weights(weight)
    reach = weight.shape[2] // 2
    height, width, _ = board.shape
    padded = np.pad(board, ((reach, reach), (reach, reach), (0, 0)))
    sums = np.zeros((height, width, len(weight)), np.int64)
    for y in range(height):
        for x in range(width):
            seen = padded[y : y + 2 * reach + 1, x : x + 2 * reach + 1]  # [k, k, inputs]
            sums[y, x] = np.einsum("yxi,oiyx->o", seen, whole)
    return sums.astype(np.float32) * scales


def values(weights: dict[str, Array], codes: Array, num_categories: int) -> Sequence[float]:
    """Every head's value of a board [H, W]; `weights` are those of an ensemble, by their names."""
    named = {name.removeprefix("network.layers."): array for name, array in weights.items()}
    convolutions = [named[f"0.weights.{i}"] for i in range(sum(name.startswith("0.weights.") for name in named))]
    nothing = np.zeros(len(convolutions[0]), np.float32)
    biases = [named.get(f"0.biases.{i}", nothing) for i in range(len(convolutions))]
    one_hot = np.eye(num_categories, dtype=np.int64)[codes]
    stream = convolve(one_hot, convolutions[0]) + biases[0]
    for block in range(len(convolutions) // 2):
        active = np.maximum(stream, np.float32(0))
        told = nothing
        if f"0.pooled_weights.{block}" in named:
            seen = np.concatenate([active.mean((0, 1)), active.max((0, 1))])
            told = named[f"0.pooled_weights.{block}"][:, :, 0, 0] @ seen
        whole, scale = rounded_board(active)
        first, second = 2 * block + 1, 2 * block + 2
        inner = np.maximum(convolve(whole, convolutions[first]) * scale + (biases[first] + told), np.float32(0))
        whole, scale = rounded_board(inner)
        stream = stream + (convolve(whole, convolutions[second]) * scale + biases[second])
    whole, scale = rounded_board(np.maximum(stream, np.float32(0)))
    hidden, last = named["1.weight"], named["2.weight"]
    results = []
    for e in range(len(last)):
        rows, scales = rounded_weights(hidden[e])
        sums = (rows @ whole.transpose(2, 0, 1).reshape(-1)).astype(np.float32) * scales
        units = np.maximum(
            sums * scale + named["1.bias"][e, :, 0] if "1.bias" in named else sums * scale, np.float32(0)
        )
        results.append(float(last[e, 0] @ units) + (float(named["2.bias"][e, 0, 0]) if "2.bias" in named else 0.0))
    return results


def board_outputs(weights: dict[str, Array], codes: Array, num_categories: int, blank: int, rounded: bool) -> Array:
    """What every head of a board network says of a board [H, W]: [E, 1 + A]; `rounded` or in floats.

    Only floor counts: cells that are not blank. They alone are written to, and means, maxima and sums are over them.
    """
    named = {name.removeprefix("network."): array for name, array in weights.items()}
    convolutions = [named[f"weights.{i}"] for i in range(sum(name.startswith("weights.") for name in named))]
    floor = codes != blank
    inputs = np.delete(np.eye(num_categories, dtype=np.int64)[codes], blank, axis=2)
    stream = np.zeros((*codes.shape, len(convolutions[0])), np.float32)
    stream[floor] = (_convolved(inputs, convolutions[0], rounded) + named["biases.0"])[floor]
    for block in range(len(convolutions) // 2):
        active = np.maximum(stream, np.float32(0))
        cells = active[floor] if floor.any() else np.zeros((1, active.shape[2]), np.float32)
        told = named[f"pooled_weights.{block}"] @ np.concatenate([cells.mean(0), cells.max(0)])
        first, second = 2 * block + 1, 2 * block + 2
        bias = named[f"biases.{first}"] + told
        inner = np.zeros_like(stream)
        inner[floor] = np.maximum(_convolved(active, convolutions[first], rounded) + bias, np.float32(0))[floor]
        stream[floor] += (_convolved(inner, convolutions[second], rounded) + named[f"biases.{second}"])[floor]
    read = _convolved(np.maximum(stream, np.float32(0)), named["readout"], rounded) + named["readout_bias"]
    units = np.maximum(read, np.float32(0))[floor]
    pooled = np.concatenate([units.sum(0) / 32, units.max(0) if len(units) else units.sum(0)])
    results = []
    for e in range(len(named["last.weight"])):
        hidden = np.maximum(named["hidden.weight"][e] @ pooled + named["hidden.bias"][e, :, 0], 0)
        results.append(named["last.weight"][e] @ hidden + named["last.bias"][e, :, 0])
    return np.array(results)


def _convolved(board: Array, weight: Array, rounded: bool) -> Array:
    """A convolution of activations [H, W, inputs], which are whole numbers already if they are integers."""
    if rounded and board.dtype == np.int64:
        return convolve(board, weight)
    if rounded:
        whole, scale = rounded_board(board)
        return convolve(whole, weight) * scale
    reach = weight.shape[2] // 2
    padded = np.pad(board.astype(np.float64), ((reach, reach), (reach, reach), (0, 0)))
    result = np.zeros((*board.shape[:2], len(weight)))
    for y in range(board.shape[0]):
        for x in range(board.shape[1]):
            result[y, x] = np.einsum("yxi,oiyx->o", padded[y : y + 2 * reach + 1, x : x + 2 * reach + 1], weight)
    return result
