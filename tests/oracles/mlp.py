"""A slow, obviously right multilayer perceptron: one member, plain Python numbers, gradients by differences."""

from __future__ import annotations

from collections.abc import Sequence


def inputs(observation: Sequence[float], num_categories: int) -> list[float]:
    """What the first layer reads: the features, or the codes as one-hot vectors one after another."""
    if not num_categories:
        return list(observation)
    return [float(code == category) for code in observation for category in range(num_categories)]


def value(layers: Sequence[tuple[list[list[float]], list[float]]], x: Sequence[float]) -> float:
    """The output of layers given as (weights [outputs][inputs], biases [outputs]), with ReLU in between."""
    h = list(x)
    for index, (weights, biases) in enumerate(layers):
        h = [b + sum(w * v for w, v in zip(row, h, strict=True)) for row, b in zip(weights, biases, strict=True)]
        if index < len(layers) - 1:
            h = [max(v, 0.0) for v in h]
    return h[0]


def loss(layers, batch, scale: float) -> float:
    """The member's part of the objective, for (inputs, target) pairs."""
    return scale * sum((value(layers, x) - target) ** 2 for x, target in batch)


def gradient(layers, batch, scale: float, step: float = 1e-6):
    """d loss / d every weight and bias, by central differences; shaped like layers."""

    def slope(numbers: list[float], k: int) -> float:
        kept = numbers[k]
        numbers[k] = kept + step
        above = loss(layers, batch, scale)
        numbers[k] = kept - step
        below = loss(layers, batch, scale)
        numbers[k] = kept
        return (above - below) / (2 * step)

    return [
        ([[slope(row, k) for k in range(len(row))] for row in weights], [slope(biases, k) for k in range(len(biases))])
        for weights, biases in layers
    ]
