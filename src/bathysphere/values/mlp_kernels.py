"""Compiled forward and backward passes of many small networks, and the optimisers' steps.

All weights of a member are rows of one table, so weights are float32 [E, R, W]. The row of a unit holds what that
unit sends to each unit of the next layer, and each layer's input ends with a constant whose row is the bias:

    first row of layer 0   an input (a feature, or one category of one cell); then the constant
    first row of layer 1   a unit of the first hidden layer; then the constant
    ...
    last row               the one output's weights, turned: column k is what unit k sends to it

A layer's input is a list of its non-zero (row, value) pairs: one-hot codes are never written out, and units that a
ReLU silenced cost nothing, forwards or backwards. Rows are padded with zeros, which stay zero, so that the inner
loops run over whole vectors.

`reassoc` and `contract` let the compiler reorder the sums of one row in a way fixed when it compiles: the value of
an observation does not depend on the others it is evaluated with.
"""

from __future__ import annotations

import numpy as np
from numba import njit
from numpy.typing import NDArray

from bathysphere.values.kernels import Floats, entry_scales

Ints = NDArray[np.integer]

SGD, TF_RMSPROP, ADAM = 0, 1, 2
BETA1, BETA2 = 0.9, 0.999  # adam's, as PyTorch's defaults

BLOCK = 8  # the lists of a layer's input end with zeros up to a multiple of this

_FAST = {"reassoc", "contract"}
_SMALLEST = np.float32(1.1754944e-38)  # below it processors turn slow; such a mean square counts as zero
_CHUNK = 128  # entries evaluated at once, so that what is in between stays in a fast cache
_ZERO, _TWO = np.float32(0), np.float32(2)


@njit(cache=True, nogil=True)
def encode(
    observations: NDArray[np.generic],
    num_categories: int,
    base: Ints,
    constant: float,
    rows: Ints,
    values: Floats,
    counts: Ints,
) -> None:
    """Lists the non-zero inputs of the first layer, or for codes the difference to the base's.

    Args:
      observations: features [n, D], or codes [n, P].
      num_categories: categories per cell; 0 for features.
      base: int64 [P], the code of each cell that a sum over the base's rows has counted already; -1 for none.
      constant: the input whose row is the bias: 1, or 0 without bias.
      rows: int32 [n, K], K at least D + 1 or 2 P + 1, and a multiple of BLOCK.
      values: float32, like rows.
      counts: int64 [n], how many pairs of each list count.

    Mutates: rows, values, counts.
    """
    num_rows, num_cells = observations.shape
    for i in range(num_rows):
        count = 0
        for p in range(num_cells):
            if num_categories == 0:
                rows[i, count] = p
                values[i, count] = observations[i, p]
                count += observations[i, p] != 0
            elif int(observations[i, p]) != base[p]:
                rows[i, count] = p * num_categories + int(observations[i, p])
                values[i, count] = 1.0
                count += 1
                if base[p] >= 0:
                    rows[i, count] = p * num_categories + base[p]
                    values[i, count] = -1.0
                    count += 1
        rows[i, count] = num_cells * max(num_categories, 1)
        values[i, count] = constant
        counts[i] = count + (constant != 0)
        _fill(rows, values, i, counts[i])


@njit(cache=True, nogil=True)
def _fill(rows, values, i, count):  # type: ignore[no-untyped-def]
    """Ends a list with zeros up to a multiple of BLOCK. Mutates: rows, values."""
    for k in range(count, -(-count // BLOCK) * BLOCK):
        rows[i, k] = 0
        values[i, k] = _ZERO


@njit(cache=True, nogil=True, fastmath={"contract"})
def _send(weights, e, first, rows, values, counts, chosen, num_chosen, width, start, units):  # type: ignore[no-untyped-def]
    """units[n, :width] = start + Σ_k values[i, k] * weights[e, first + rows[i, k]] for i = chosen[n]. Mutates: units.

    Eight rows at a time: an eighth of the traffic to `units`, and of what starting a vector loop costs. Unsigned
    numbers need no test for indices from the end.
    """
    member, first_row = np.uint64(e), np.uint64(first)
    for n in range(num_chosen):
        i = chosen[n]
        for j in range(width):
            units[n, j] = start[j]
        for k in range(0, counts[i], BLOCK):
            r0, v0 = first_row + np.uint64(rows[i, k]), values[i, k]
            r1, v1 = first_row + np.uint64(rows[i, k + 1]), values[i, k + 1]
            r2, v2 = first_row + np.uint64(rows[i, k + 2]), values[i, k + 2]
            r3, v3 = first_row + np.uint64(rows[i, k + 3]), values[i, k + 3]
            r4, v4 = first_row + np.uint64(rows[i, k + 4]), values[i, k + 4]
            r5, v5 = first_row + np.uint64(rows[i, k + 5]), values[i, k + 5]
            r6, v6 = first_row + np.uint64(rows[i, k + 6]), values[i, k + 6]
            r7, v7 = first_row + np.uint64(rows[i, k + 7]), values[i, k + 7]
            for j in range(width):
                a = v0 * weights[member, r0, j] + v1 * weights[member, r1, j]
                b = v2 * weights[member, r2, j] + v3 * weights[member, r3, j]
                c = v4 * weights[member, r4, j] + v5 * weights[member, r5, j]
                d = v6 * weights[member, r6, j] + v7 * weights[member, r7, j]
                units[n, j] += (a + b) + (c + d)


@njit(cache=True, nogil=True)
def _rectify(units, num_chosen, size, constant, rows, values, counts):  # type: ignore[no-untyped-def]
    """Lists the units above zero, and the constant, as the next layer's input. Mutates: rows, values, counts."""
    for n in range(num_chosen):
        count = np.uint64(0)
        for j in range(size):  # no branch: half of the units are silent, and which is hard to guess
            output = units[n, j]
            rows[n, count] = j
            values[n, count] = output
            count += np.uint64(output > _ZERO)
        rows[n, count] = size
        values[n, count] = constant
        counts[n] = np.int64(count) + (constant != _ZERO)
        _fill(rows, values, n, counts[n])


@njit(cache=True, nogil=True, fastmath=_FAST)
def _dot(weights, e, row, vector, width):  # type: ignore[no-untyped-def]
    """Returns Σ_j weights[e, row, j] * vector[j], j < width."""
    total = _ZERO
    for j in range(width):
        total += weights[e, row, j] * vector[j]
    return total


@njit(cache=True, nogil=True, fastmath=_FAST)
def _output(weights, e, units, num_chosen, size, width, constant, predicted):  # type: ignore[no-untyped-def]
    """Rectifies the last hidden layer, and adds it up with the output's weights. Mutates: units, predicted."""
    member, row = np.uint64(e), np.uint64(weights.shape[1] - 1)
    for n in range(num_chosen):
        units[n, size] = constant
        total = _ZERO
        for j in range(width):
            output = units[n, j] if units[n, j] > _ZERO else _ZERO
            units[n, j] = output
            total += output * weights[member, row, j]
        predicted[n] = total


@njit(cache=True, nogil=True)
def _forward(  # type: ignore[no-untyped-def]
    weights, e, layers, constant, rows, values, counts, chosen, num_chosen, order, start, zero, hidden, units, predicted
):
    """Computes member e's values of the chosen entries, and leaves behind what the backward pass needs.

    The first layer's sums begin with start [W], the others' with zero [W].

    Mutates: predicted [n]; units [n, W], the last hidden layer's outputs; hidden, the lists (rows and values
    [L, n, W], counts [L, n]) that layers after the first received.
    """
    active, outputs, num_active = hidden
    last = layers.shape[0] - 1
    for layer in range(last + 1):
        first, size, width = layers[layer, 0], layers[layer, 1], layers[layer, 2]
        if layer == 0:
            _send(weights, e, first, rows, values, counts, chosen, num_chosen, width, start, units)
        else:
            inputs = (active[layer], outputs[layer], num_active[layer])
            _send(weights, e, first, *inputs, order, num_chosen, width, zero, units)
        if layer < last:
            inputs = (active[layer + 1], outputs[layer + 1], num_active[layer + 1])
            _rectify(units, num_chosen, size, constant, *inputs)
    _output(weights, e, units, num_chosen, layers[last, 1], layers[last, 2], constant, predicted)


@njit(cache=True, nogil=True)
def _scratch(num_entries, layers, width):  # type: ignore[no-untyped-def]
    """Allocates what `_forward` needs: chosen, order, zero, hidden, units, predicted."""
    shape = (layers.shape[0], num_entries, width)
    hidden = (np.empty(shape, np.int32), np.empty(shape, np.float32), np.empty(shape[:2], np.int64))
    units, predicted = np.empty(shape[1:], np.float32), np.empty(num_entries, np.float32)
    zero = np.zeros(width, np.float32)
    return np.empty(num_entries, np.int64), np.arange(num_entries), zero, hidden, units, predicted


@njit(cache=True, nogil=True)
def evaluate(
    weights: Floats,
    layers: Ints,
    constant: float,
    rows: Ints,
    values: Floats,
    counts: Ints,
    base_rows: Ints,
    mask: NDArray[np.bool_],
    out: Floats,
) -> None:
    """Computes the values of all entries and members that the mask keeps.

    Args:
      weights: float32 [E, R, W].
      layers: int64 [L, 3], for each hidden layer its first row, its number of units, and its padded width.
      constant: as for `encode`.
      rows: int32 [n, K], inputs as `encode` lists them.
      values: float32 [n, K].
      counts: int64 [n].
      base_rows: int64 [P], the rows of the base that was given to `encode`; empty for none.
      mask: bool [n, E].
      out: float32 [n, E]; only what the mask keeps is written.

    Mutates: out.
    """
    num_members, _, width = weights.shape
    one = np.float32(constant)
    chosen, order, zero, hidden, units, predicted = _scratch(_CHUNK, layers, width)
    start = np.empty(width, np.float32)
    for begin in range(0, counts.size, _CHUNK):
        for e in range(num_members):  # outside the entries: one member's weights fit a fast cache
            start[:] = _ZERO
            for row in base_rows:
                for j in range(layers[0, 2]):
                    start[j] += weights[e, row, j]
            num_chosen = 0
            for i in range(begin, min(begin + _CHUNK, counts.size)):
                chosen[num_chosen] = i
                num_chosen += mask[i, e]
            _forward(
                *(weights, e, layers, one, rows, values, counts, chosen, num_chosen),
                *(order, start, zero, hidden, units, predicted),
            )
            for n in range(num_chosen):
                out[chosen[n], e] = predicted[n]


@njit(cache=True, nogil=True, fastmath=_FAST)
def _backward(  # type: ignore[no-untyped-def]
    weights, e, layers, rows, values, counts, chosen, num_chosen, hidden, units, slopes, back, down, gradient, touched
):
    """Adds Σ_n slopes[n] * d predicted[n] / d weights of what `_forward` computed last.

    Mutates: gradient, touched; back and down [W], scratch.
    """
    active, outputs, num_active = hidden
    last_layer, last_row = layers.shape[0] - 1, weights.shape[1] - 1
    for n in range(num_chosen):
        slope, i = slopes[n], chosen[n]
        touched[e, last_row] = True
        for j in range(layers[last_layer, 2]):
            gradient[e, last_row, j] += slope * units[n, j]
            back[j] = slope * weights[e, last_row, j] if units[n, j] > _ZERO else _ZERO
        back[layers[last_layer, 1]] = _ZERO  # the constant came from nowhere
        for layer in range(last_layer, 0, -1):
            first, width = layers[layer, 0], layers[layer, 2]
            for j in range(layers[layer - 1, 2]):
                down[j] = _ZERO
            for k in range(num_active[layer, n]):
                unit, value = active[layer, n, k], outputs[layer, n, k]
                row = first + unit
                touched[e, row] = True
                for j in range(width):
                    gradient[e, row, j] += value * back[j]
                down[unit] = _dot(weights, e, row, back, width)
            down[layers[layer - 1, 1]] = _ZERO
            back, down = down, back
        for k in range(counts[i]):
            row, value = rows[i, k], values[i, k]
            touched[e, row] = True
            for j in range(layers[0, 2]):
                gradient[e, row, j] += value * back[j]


@njit(cache=True, nogil=True)
def settle(mean_square: Floats, last_update: Ints, decay: float, now: int) -> None:
    """Makes up for postponed decay, exactly as if it had been done at every update.

    Args:
      mean_square: float32 [E, R, W].
      last_update: int64 [E, R], the number of updates that a row has seen.
      decay: smoothing of the mean square.
      now: the number of updates that every row is to have seen.

    Mutates: mean_square, last_update.
    """
    for e in range(last_update.shape[0]):
        for row in range(last_update.shape[1]):
            _settle_row(mean_square, e, row, np.float32(decay), now - last_update[e, row])
            last_update[e, row] = now


@njit(cache=True, nogil=True, fastmath=_FAST)
def _settle_row(mean_square, e, row, decay, num_times):  # type: ignore[no-untyped-def]
    """Multiplies a row num_times by decay, rounding each time. Mutates: mean_square."""
    for _ in range(num_times):
        total = _ZERO
        for j in range(mean_square.shape[2]):
            m = decay * mean_square[e, row, j]
            m = m if m >= _SMALLEST else _ZERO
            mean_square[e, row, j] = m
            total += m
        if total == _ZERO:
            break


@njit(cache=True, nogil=True, error_model="numpy", fastmath=_FAST)
def _step_row(weights, gradient, means, mean_square, e, row, kind, rate, decay, eps, shrink, root):  # type: ignore[no-untyped-def]
    """Takes one optimiser's step on a row and clears its gradient; returns the gradient's squared norm.

    Mutates: weights, gradient, mean_square; adam's means.
    """
    width = weights.shape[2]
    norm = _ZERO
    for j in range(width):
        norm += gradient[e, row, j] * gradient[e, row, j]
    if kind == SGD:
        for j in range(width):
            weights[e, row, j] -= rate * gradient[e, row, j]
    elif kind == TF_RMSPROP:
        add = np.float32(1) - decay
        for j in range(width):
            g = gradient[e, row, j]
            m = decay * mean_square[e, row, j] + add * g * g
            m = m if m >= _SMALLEST else _ZERO
            mean_square[e, row, j] = m
            weights[e, row, j] -= rate * g / np.sqrt(m + eps)
    else:
        keep1, keep2 = np.float32(BETA1), np.float32(BETA2)
        add1, add2 = np.float32(1 - BETA1), np.float32(1 - BETA2)
        for j in range(width):
            g = gradient[e, row, j]
            mean = keep1 * means[e, row, j] + add1 * g
            m = keep2 * mean_square[e, row, j] + add2 * g * g
            mean = mean if abs(mean) >= _SMALLEST else _ZERO
            m = m if m >= _SMALLEST else _ZERO
            means[e, row, j], mean_square[e, row, j] = mean, m
            weights[e, row, j] -= rate * shrink * mean / (np.sqrt(m) * root + eps)
    for j in range(width):
        gradient[e, row, j] = _ZERO
    return norm


@njit(cache=True, nogil=True, fastmath=_FAST)
def _add_weight_decay(weights, gradient, touched, coef):  # type: ignore[no-untyped-def]
    """Adds the gradient of coef / 2 * Σ w², and returns that term. Mutates: gradient, touched."""
    flat, slopes = weights.reshape(-1), gradient.reshape(-1)
    total = 0.0
    for i in range(flat.size):
        slopes[i] += coef * flat[i]
        total += flat[i] * flat[i]
    touched[:] = True
    return 0.5 * coef * total


@njit(cache=True, nogil=True)
def update(
    weights: Floats,
    layers: Ints,
    constant: float,
    rows: Ints,
    values: Floats,
    counts: Ints,
    targets: Floats,
    mask: NDArray[np.bool_],
    normalise: int,
    l2: float,
    kind: int,
    rate: float,
    decay: float,
    eps: float,
    means: Floats,
    mean_square: Floats,
    last_update: Ints,
    num_updates_before: int,
    gradient: Floats,
    member_errors: Floats,
    totals: Floats,
) -> None:
    """Learns from u batches of b entries in order.

    Only pairs of entry and member that the mask keeps are computed. Where the gradient is zero, sgd does nothing and
    RMSProp only shrinks the mean square; the shrinking is postponed to the next touch (`settle`).
    Invariant: gradient is zero between updates.

    Args:
      weights: float32 [E, R, W].
      layers: int64 [L, 3], as for `evaluate`.
      constant: as for `encode`.
      rows: int32 [u * b, K], inputs as `encode` lists them.
      values: float32 [u * b, K].
      counts: int64 [u * b].
      targets: float32 [u, b, M]; M is 1 for a target common to all members, or E.
      mask: bool [u, b, E].
      normalise: how the loss is divided.
      l2: the loss has l2 / 2 * Σ w² added.
      kind: SGD, TF_RMSPROP or ADAM.
      rate: learning rate.
      decay: smoothing of RMSProp's mean square.
      eps: inside RMSProp's root, outside adam's.
      means: adam's mean gradients, float32 [E, R, W]; else empty.
      mean_square: float32 [E, R, W]; empty for SGD.
      last_update: int64 [E, R], the number of updates that mean_square[e, r] has seen; used by RMSProp.
      num_updates_before: updates made before this call.
      gradient: float32 [E, R, W] scratch, all zero before and after.
      member_errors: float64 [E], receives the summed squared errors.
      totals: float64 [2], receives the losses and the gradient norms, summed over batches.

    Mutates: weights, means, mean_square, last_update, member_errors, totals; gradient (restored).
    """
    num_members, num_rows, width = weights.shape
    num_updates, batch_size = mask.shape[:2]
    is_own = targets.shape[2] > 1
    one, rate_, decay_, eps_ = np.float32(constant), np.float32(rate), np.float32(decay), np.float32(eps)
    chosen, order, zero, hidden, units, predicted = _scratch(batch_size, layers, width)
    back, down = np.empty(width, np.float32), np.empty(width, np.float32)
    touched = np.zeros((num_members, num_rows), np.bool_)
    scales = np.empty(num_members)
    for u in range(num_updates):
        entry_scales(mask[u], normalise, scales)
        for e in range(num_members):
            num_chosen = 0
            for b in range(batch_size):
                if mask[u, b, e]:
                    chosen[num_chosen] = u * batch_size + b
                    num_chosen += 1
            entries = (rows, values, counts, chosen, num_chosen)
            _forward(weights, e, layers, one, *entries, order, zero, zero, hidden, units, predicted)
            squared = 0.0
            for n in range(num_chosen):
                error = predicted[n] - targets[u, chosen[n] - u * batch_size, e if is_own else 0]
                squared += float(error) * float(error)
                predicted[n] = _TWO * np.float32(scales[e]) * error  # from here on the slope of the loss
            _backward(weights, e, layers, *entries, hidden, units, predicted, back, down, gradient, touched)
            member_errors[e] += squared
            totals[0] += scales[e] * squared
        if l2 > 0:
            totals[0] += _add_weight_decay(weights, gradient, touched, np.float32(l2))
        now = num_updates_before + u + 1
        shrink = np.float32(1.0 / (1.0 - BETA1**now))
        root = np.float32(1.0 / np.sqrt(1.0 - BETA2**now))
        norm = 0.0
        for e in range(num_members):
            for row in range(num_rows):
                if touched[e, row] or kind == ADAM:
                    touched[e, row] = False
                    if kind == TF_RMSPROP:
                        _settle_row(mean_square, e, row, decay_, now - 1 - last_update[e, row])
                        last_update[e, row] = now
                    norm += _step_row(
                        *(weights, gradient, means, mean_square, e, row, kind),
                        *(rate_, decay_, eps_, shrink, root),
                    )
        totals[1] += np.sqrt(norm)
