"""What lies between two products of 8-bit integers: floats that are added up and rounded again, board by board.

Activations of board i are rounded to whole multiples of a scale of its own, scales[i], from 0 to `top` of them. Cells
that are not floor are blank: nothing there, whatever the products say.
"""

from __future__ import annotations

import numpy as np
from numba import njit
from numpy.typing import NDArray

Floats = NDArray[np.float32]
Bytes = NDArray[np.uint8]
Flags = NDArray[np.bool_]


_LEAST = np.float32(1e-30)  # a board with less than this everywhere is rounded to nothing


@njit(cache=True, nogil=True)
def _round_board(active: Floats, sums: Floats, maxima: Floats, top: int, rounded: Bytes) -> np.float32:
    """Rounds the activations of a board, [P, C] and not negative; returns its scale, which is NaN if one of them is.

    Args:
      active: the activations.
      sums: [C], of each channel.
      maxima: [C], the largest of each channel.
      top: what the largest of all becomes.
      rounded: [P, C].

    Mutates: rounded.
    """
    total, largest = np.float32(0.0), np.float32(0.0)
    for c in range(maxima.size):
        total += sums[c]
        largest = max(largest, maxima[c])
    if largest < _LEAST or not total < np.inf:
        rounded[:] = 0
        return np.float32(0.0) if total < np.inf else np.float32(np.nan)
    inverse = np.float32(top) / largest
    for p in range(active.shape[0]):
        for c in range(active.shape[1]):
            rounded[p, c] = np.uint8(np.int32(active[p, c] * inverse + np.float32(0.5)))
    return largest / np.float32(top)


@njit(cache=True, nogil=True)
def rectify_and_round(
    products: Floats,
    scales: Floats,
    floor: Flags,
    bias: Floats,
    pooled: Floats,
    pooled_weight: Floats,
    top: int,
    rounded: Bytes,
) -> None:
    """Finishes the first convolution of a block.

    Invariant: rounded[i] * scales[i] is max(0, products[i] * (scales[i] before) + bias + pooled[i] @ pooled_weight), to
    half a scale, on the floor.

    Args:
      products: [n, P, C], of the rounded activations.
      scales: [n], of the boards that went into the products, and then of those that come out.
      floor: [n, P], which cells are not blank.
      bias: [C].
      pooled: [n, K], what every cell is told of its board.
      pooled_weight: [K, C], and what it makes of that.
      top: the largest number to round to.
      rounded: [n, P, C].

    Mutates: scales, rounded.
    """
    num, num_cells, channels = products.shape
    active = np.empty((num_cells, channels), np.float32)
    offset, sums, maxima = np.empty((3, channels), np.float32)
    for i in range(num):
        scale = scales[i]
        offset[:] = bias
        for k in range(len(pooled_weight)):
            for c in range(channels):
                offset[c] += pooled[i, k] * pooled_weight[k, c]
        sums[:] = 0
        maxima[:] = 0
        for p in range(num_cells):
            if not floor[i, p]:
                active[p] = 0
                continue
            for c in range(channels):
                value = products[i, p, c] * scale + offset[c]
                if value < 0:  # not max, which may lose a NaN
                    value = np.float32(0.0)
                active[p, c] = value
                sums[c] += value
                maxima[c] = max(maxima[c], value)
        scales[i] = _round_board(active, sums, maxima, top, rounded[i])


@njit(cache=True, nogil=True)
def add_and_round(
    products: Floats,
    scales: Floats,
    floor: Flags,
    bias: Floats,
    top: int,
    stream: Floats,
    rounded: Bytes,
    pooled: Floats,
) -> None:
    """Finishes the second convolution of a block: adds it to the stream past the blocks.

    Invariant: stream[i] grows by products[i] * (scales[i] before) + bias, and rounded[i] * scales[i] is what of it is
    positive, to half a scale, on the floor.

    Args:
      products, scales, floor, bias, top, rounded: as in `rectify_and_round`.
      stream: [n, P, C].
      pooled: [n, 2 C], the means and then the maxima over the floor of a board of what of the stream is positive.

    Mutates: scales, stream, rounded, pooled.
    """
    num, num_cells, channels = products.shape
    active = np.empty((num_cells, channels), np.float32)
    sums, maxima = np.empty(channels, np.float32), np.empty(channels, np.float32)
    for i in range(num):
        scale = scales[i]
        sums[:] = 0
        maxima[:] = 0
        num_floor = 0
        for p in range(num_cells):
            if not floor[i, p]:
                active[p] = 0
                continue
            num_floor += 1
            for c in range(channels):
                value = stream[i, p, c] + (products[i, p, c] * scale + bias[c])
                stream[i, p, c] = value
                if value < 0:
                    value = np.float32(0.0)
                active[p, c] = value
                sums[c] += value
                maxima[c] = max(maxima[c], value)
        for c in range(channels):
            pooled[i, c] = sums[c] / np.float32(max(num_floor, 1))
            pooled[i, channels + c] = maxima[c]
        scales[i] = _round_board(active, sums, maxima, top, rounded[i])


@njit(cache=True, nogil=True)
def read_out(products: Floats, scales: Floats, floor: Flags, bias: Floats, sum_scale: float, pooled: Floats) -> None:
    """Sums up what heads read of each board.

    Invariant: pooled[i] is the sum over the floor of max(0, products[i] * scales[i] + bias) times `sum_scale`, and then
    the maximum.

    Args:
      products: [n, P, R], of the rounded activations.
      scales: [n], of the boards.
      floor: [n, P], which cells are not blank.
      bias: [R].
      sum_scale: of the sums.
      pooled: [n, 2 R].

    Mutates: pooled.
    """
    num, num_cells, units = products.shape
    for i in range(num):
        pooled[i] = 0
        scale = scales[i]
        for p in range(num_cells):
            if not floor[i, p]:
                continue
            for c in range(units):
                value = products[i, p, c] * scale + bias[c]
                if value < 0:  # not max, which may lose a NaN
                    value = np.float32(0.0)
                pooled[i, c] += value
                pooled[i, units + c] = max(pooled[i, units + c], value)
        for c in range(units):
            pooled[i, c] *= np.float32(sum_scale)


@njit(cache=True, nogil=True)
def board_heads(
    pooled: Floats, hidden: Floats, hidden_bias: Floats, last: Floats, last_bias: Floats, outputs: Floats
) -> None:
    """Computes every head's outputs: last @ max(0, hidden @ pooled + hidden_bias) + last_bias, board by board.

    Args:
      pooled: [n, K].
      hidden: [K, E * U].
      hidden_bias: [E * U].
      last: [E, O, U].
      last_bias: [E, O].
      outputs: [n, E, O].

    Mutates: outputs.
    """
    members, num_outputs, units = last.shape
    active = np.empty(members * units, np.float32)
    for i in range(len(pooled)):
        active[:] = hidden_bias
        for k in range(pooled.shape[1]):
            if pooled[i, k] != 0:
                for u in range(active.size):
                    active[u] += pooled[i, k] * hidden[k, u]
        for e in range(members):
            for o in range(num_outputs):
                total = last_bias[e, o]
                for u in range(units):
                    value = active[e * units + u]
                    if value < 0:
                        value = np.float32(0.0)
                    total += value * last[e, o, u]
                outputs[i, e, o] = total


@njit(cache=True, nogil=True)
def head_values(products: Floats, scales: Floats, bias: Floats, weight: Floats, last_bias: Floats) -> Floats:
    """Returns every head's value, float32 [n, E], of the products of its hidden units.

    Args:
      products: [n, E * U], of the rounded activations.
      scales: [n], of the boards.
      bias: [E * U].
      weight: [E, U], of the last layer.
      last_bias: [E].
    """
    num, (members, units) = len(products), weight.shape
    values = np.empty((num, members), np.float32)
    for i in range(num):
        for e in range(members):
            total = last_bias[e]
            for u in range(units):
                hidden = products[i, e * units + u] * scales[i] + bias[e * units + u]
                if hidden < 0:
                    hidden = np.float32(0.0)
                total += hidden * weight[e, u]
            values[i, e] = total
    return values
