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
