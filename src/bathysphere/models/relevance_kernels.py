"""The compiled loops of the memory that generalises. The slow twin is tests/oracles/relevance.py."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from bathysphere.domains.base import States
from bathysphere.models.row_index import compiled


class Steps(NamedTuple):
    """What is remembered. Letters: N states, A actions, S bytes."""

    seen: States  # uint8 [N, S]
    known: NDArray[np.bool_]  # [N, A]
    states: States  # uint8 [N, A, S], what followed, and so on
    rewards: NDArray[np.float64]  # [N, A]
    terminal: NDArray[np.bool_]  # [N, A]
    solved: NDArray[np.bool_]  # [N, A]


class Places(NamedTuple):
    """What is remembered by relevant bytes. Letters: P values of them, O other bytes that vary."""

    first: NDArray[np.int64]  # [P, A], the first state remembered; -1 for none
    is_disputed: NDArray[np.bool_]  # [P, A], steps did not all do the same
    does_nothing: NDArray[np.bool_]  # [P, A], the first one did nothing
    tested: NDArray[np.uint8]  # [P, A, O, 32], a bit for every value of an other byte with which nothing happened

    @classmethod
    def empty(cls, num_places: int, num_actions: int, num_others: int) -> Places:
        """Returns places of which nothing is remembered."""
        first = np.full((num_places, num_actions), -1, np.int64)
        flags = np.zeros((2, num_places, num_actions), np.bool_)
        return cls(first, flags[0], flags[1], np.zeros((num_places, num_actions, num_others, 32), np.uint8))


@compiled
def answer(steps, places, others, values_seen, states, rows, numbers, is_known, out, rewards, terminal, solved):  # type: ignore[no-untyped-def]
    """Says what is known of `states`, uint8 [n, S].

    Args:
      others: numbers of the other bytes, [O].
      values_seen: bool [S, 256], values of each byte with which steps began.
      rows, numbers: [n], where these states are among those remembered, and their place; -1 for none.

    Mutates: is_known [n, A], out [n, A, S], rewards, terminal and solved [n, A], every entry.
    """
    for k in range(states.shape[0]):
        is_familiar = numbers[k] >= 0
        for b in range(states.shape[1]):
            is_familiar &= values_seen[b, states[k, b]]
        for a in range(is_known.shape[1]):
            row, is_exact = rows[k], False
            if row >= 0:
                is_exact = steps.known[row, a]
            is_believed = False
            if not is_exact and is_familiar:
                row = places.first[numbers[k], a]
                is_believed = row >= 0 and not places.is_disputed[numbers[k], a]
                if is_believed and places.does_nothing[numbers[k], a]:
                    for j in range(others.shape[0]):
                        value = states[k, others[j]]
                        is_believed &= (places.tested[numbers[k], a, j, value >> 3] >> (value & 7)) & 1 == 1
            is_known[k, a] = is_exact or is_believed
            if not is_known[k, a]:
                for b in range(states.shape[1]):
                    out[k, a, b] = states[k, b]
                rewards[k, a], terminal[k, a], solved[k, a] = 0.0, False, False
                continue
            for b in range(states.shape[1]):
                out[k, a, b] = states[k, b] + steps.states[row, a, b] - steps.seen[row, b]
            rewards[k, a], terminal[k, a] = steps.rewards[row, a], steps.terminal[row, a]
            solved[k, a] = steps.solved[row, a]


@compiled
def join(steps, places, others, rows, actions, numbers):  # type: ignore[no-untyped-def]
    """Puts steps that are remembered, `actions` [n] in the states of `rows` [n], into their places, `numbers` [n].

    Mutates: places.
    """
    for k in range(rows.shape[0]):
        row, action, place = rows[k], actions[k], numbers[k]
        does_nothing = steps.rewards[row, action] == 0.0 and not steps.terminal[row, action]
        for b in range(steps.seen.shape[1]):
            does_nothing &= steps.states[row, action, b] == steps.seen[row, b]
        first = places.first[place, action]
        if first < 0:
            places.first[place, action] = row
            places.does_nothing[place, action] = does_nothing
        elif not is_same(steps, first, row, action):
            places.is_disputed[place, action] = True
        if does_nothing:
            for j in range(others.shape[0]):
                value = steps.seen[row, others[j]]
                places.tested[place, action, j, value >> 3] |= np.uint8(1 << (value & 7))


@compiled
def is_same(steps, one, other, action):  # type: ignore[no-untyped-def]
    """Returns whether an action did the same in the states of two rows."""
    same = steps.rewards[one, action] == steps.rewards[other, action]
    same &= steps.terminal[one, action] == steps.terminal[other, action]
    same &= steps.solved[one, action] == steps.solved[other, action]
    for b in range(steps.seen.shape[1]):
        change = np.uint8(steps.states[one, action, b] - steps.seen[one, b])
        same &= change == np.uint8(steps.states[other, action, b] - steps.seen[other, b])
    return same
