"""Compiled inner loops of the value functions. Arrays and scalars in; each says what it writes."""

from __future__ import annotations

import numpy as np
from numba import njit
from numpy.typing import NDArray

Floats = NDArray[np.floating]

ALL, ACTIVE, MEMBER = 0, 1, 2  # how a sum of squared errors is divided; see OptimiserConfig.normalise
NORMALISE = {"all": ALL, "active": ACTIVE, "member": MEMBER}

_RESTART = 32  # rows after which sum_rows starts afresh, so that rounding errors cannot pile up


@njit(cache=True, nogil=True)
def sum_rows(codes: NDArray[np.integer], table: Floats, bias: Floats, num_categories: int, out: Floats) -> None:
    """Sums, for each row of codes, one table row per cell: a matrix product with one-hot rows never built.

    Invariant: out[i] = bias + Σ_p table[p * num_categories + codes[i, p]], up to rounding. Neighbouring rows
    of a search's batch are siblings that differ in a few cells, so a row is computed from the one before it
    when that is less work.

    Args:
      codes: [n, P], each < num_categories.
      table: [P * num_categories, M].
      bias: [M].
      num_categories: categories per cell.
      out: [n, M].

    Mutates: out.
    """
    num_rows, num_cells = codes.shape
    for i in range(num_rows):
        changed = num_cells
        if i % _RESTART != 0:
            changed = 0
            for p in range(num_cells):
                if codes[i, p] != codes[i - 1, p]:
                    changed += 1
        if 2 * changed < num_cells:
            out[i] = out[i - 1]
            for p in range(num_cells):
                if codes[i, p] != codes[i - 1, p]:
                    new = p * num_categories + codes[i, p]
                    old = p * num_categories + codes[i - 1, p]
                    for m in range(bias.size):
                        out[i, m] += table[new, m] - table[old, m]
        else:
            out[i] = bias
            for p in range(num_cells):
                row = p * num_categories + codes[i, p]
                for m in range(bias.size):
                    out[i, m] += table[row, m]


@njit(cache=True, nogil=True, error_model="numpy")  # Python's check for division by zero would stop vectorisation
def rmsprop_step(weights: Floats, gradient: Floats, mean_square: Floats, rate: float, decay: float, eps: float) -> None:
    """Takes a dense TensorFlow-1 RMSProp step in one sweep, in the precision of the arrays.

    Invariant: m <- decay * m + (1 - decay) * g^2, then w <- w - rate * g / sqrt(m + eps).

    Args:
      weights: [m].
      gradient: [m].
      mean_square: [m].
      rate: learning rate.
      decay: smoothing of the mean square.
      eps: added inside the root.

    Mutates: weights, mean_square.
    """
    number = weights.dtype.type
    rate_, keep, add, eps_ = number(rate), number(decay), number(1.0 - decay), number(eps)
    for i in range(weights.size):
        g = gradient[i]
        m = keep * mean_square[i] + add * g * g
        mean_square[i] = m
        weights[i] -= rate_ * g / np.sqrt(m + eps_)


@njit(cache=True, nogil=True)
def entry_scales(mask: NDArray[np.bool_], normalise: int, scales: Floats) -> None:
    """Computes what one squared error of each member weighs in the loss.

    Args:
      mask: entries kept, bool [b, E].
      normalise: ALL, ACTIVE or MEMBER.
      scales: float64 [E]; a member without entries gets 0.

    Mutates: scales.
    """
    batch_size, num_members = mask.shape
    scales[:] = 0.0
    for b in range(batch_size):
        for e in range(num_members):
            scales[e] += mask[b, e]
    total = scales.sum()
    for e in range(num_members):
        if normalise == ALL:
            scales[e] = 1.0 / (batch_size * num_members)
        elif scales[e] > 0 and normalise == ACTIVE:
            scales[e] = 1.0 / total
        elif scales[e] > 0:
            scales[e] = 1.0 / scales[e]


@njit(cache=True, nogil=True)
def delta_steps(
    table: Floats,
    rows: NDArray[np.integer],
    targets: Floats,
    mask: NDArray[np.bool_],
    rate: float,
    normalise: int,
    member_errors: Floats,
    member_counts: Floats,
    totals: Floats,
) -> None:
    """Applies the delta rule entry after entry: table[row, e] += rate * (target - table[row, e]).

    Invariant: with rate <= 1 a value never passes its target, however often a batch repeats a row.

    Args:
      table: [R, E].
      rows: [u, b] in [0, R): u batches, applied in order.
      targets: [u, b, M]; M is 1 for a target common to all members, or E.
      mask: bool [u, b, E].
      rate: fraction of the error removed by one visit.
      normalise: how the reported loss is divided.
      member_errors: float64 [E], receives the summed squared errors.
      member_counts: float64 [E], receives the number of errors.
      totals: float64 [2], receives the losses and the lengths of the steps (over rate), summed over batches.

    Mutates: table, member_errors, member_counts, totals.
    """
    num_updates, batch_size = rows.shape
    num_members = table.shape[1]
    is_own = targets.shape[2] > 1
    scales, squared = np.empty(num_members), np.empty(num_members)
    for u in range(num_updates):
        entry_scales(mask[u], normalise, scales)
        squared[:] = 0.0
        for b in range(batch_size):
            row = rows[u, b]
            # No branch on the mask: half of its bits would be guessed wrong.
            for e in range(num_members):
                error = mask[u, b, e] * (float(targets[u, b, e if is_own else 0]) - float(table[row, e]))
                table[row, e] += rate * error
                squared[e] += error * error
                member_counts[e] += mask[u, b, e]
        member_errors += squared
        totals[0] += (scales * squared).sum()
        totals[1] += np.sqrt(squared.sum())


@njit(cache=True, nogil=True)
def gradient_steps(
    table: Floats,
    rows: NDArray[np.integer],
    targets: Floats,
    mask: NDArray[np.bool_],
    rate: float,
    normalise: int,
    is_rmsprop: bool,
    decay: float,
    eps: float,
    accumulators: Floats,
    last_update: NDArray[np.int64],
    num_updates_before: int,
    gradient: Floats,
    member_errors: Floats,
    member_counts: Floats,
    totals: Floats,
) -> None:
    """Applies gradient or TensorFlow-1 RMSProp steps to the rows a batch touches.

    RMSProp is dense: m <- decay * m + (1 - decay) * g^2 for every weight, at every update. Where g = 0 the
    weight stays and m only shrinks, so the shrinking is postponed to the next touch.
    Invariant: the dense accumulator after update t is accumulators[r, e] * decay ** (t - last_update[r]).

    Args:
      table: [R, E].
      rows: [u, b] in [0, R): u batches, applied in order.
      targets: [u, b, M]; M is 1 for a target common to all members, or E.
      mask: bool [u, b, E].
      rate: learning rate.
      normalise: how the loss is divided.
      is_rmsprop: False takes plain gradient steps and ignores the next four arguments and last_update.
      decay: smoothing of the mean square.
      eps: added to the mean square inside the root.
      accumulators: float64 [R, E].
      last_update: int64 [R], the number of updates that accumulators[r] has seen.
      num_updates_before: updates made before this call.
      gradient: float64 [R, E] scratch, all zero before and after.
      member_errors: float64 [E], receives the summed squared errors.
      member_counts: float64 [E], receives the number of errors.
      totals: float64 [2], receives the losses and the gradient norms, summed over batches.

    Mutates: table, accumulators, last_update, member_errors, member_counts, totals; gradient (restored).
    """
    num_updates, batch_size = rows.shape
    num_members = table.shape[1]
    is_own = targets.shape[2] > 1
    scales, squared = np.empty(num_members), np.empty(num_members)
    for u in range(num_updates):
        entry_scales(mask[u], normalise, scales)
        squared[:] = 0.0
        for b in range(batch_size):
            row = rows[u, b]
            for e in range(num_members):
                error = mask[u, b, e] * (float(table[row, e]) - float(targets[u, b, e if is_own else 0]))
                gradient[row, e] += 2.0 * scales[e] * error
                squared[e] += error * error
                member_counts[e] += mask[u, b, e]
        member_errors += squared
        totals[0] += (scales * squared).sum()
        squared_norm = 0.0
        now = num_updates_before + u + 1
        # A repeated row needs no care: its gradient is zero, and its decay done, when it comes up again.
        for b in range(batch_size):
            row = rows[u, b]
            shrink = 1.0
            if is_rmsprop:
                shrink = decay ** (now - last_update[row])
                last_update[row] = now
            for e in range(num_members):
                if is_rmsprop:
                    accumulators[row, e] *= shrink
                g = gradient[row, e]
                if g != 0.0:
                    step = rate * g
                    if is_rmsprop:
                        accumulators[row, e] += (1.0 - decay) * g * g
                        step /= np.sqrt(accumulators[row, e] + eps)
                    table[row, e] -= step
                    squared_norm += g * g
                    gradient[row, e] = 0.0
        totals[1] += np.sqrt(squared_norm)
