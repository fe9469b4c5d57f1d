"""Slow, obviously right twins of the values and learning kernels: plain Python numbers, lists and loops."""

from __future__ import annotations

import math
from collections.abc import Sequence


def one_hot_product(
    codes: Sequence[int], table: Sequence[Sequence[float]], bias: Sequence[float], num_categories: int
) -> list[float]:
    """One row of codes as a one-hot vector times the table, plus the bias."""
    one_hot = [0.0] * (len(codes) * num_categories)
    for cell, code in enumerate(codes):
        one_hot[cell * num_categories + code] = 1.0
    return [bias[m] + sum(x * row[m] for x, row in zip(one_hot, table, strict=True)) for m in range(len(bias))]


def scales(mask: Sequence[Sequence[bool]], normalise: str) -> list[float]:
    """What one squared error of each member weighs."""
    num_members = len(mask[0])
    counts = [sum(bool(row[e]) for row in mask) for e in range(num_members)]
    if normalise == "all":
        return [1 / (len(mask) * num_members)] * num_members
    if normalise == "active":
        return [1 / sum(counts) if count else 0.0 for count in counts]
    return [1 / count if count else 0.0 for count in counts]


def own(target: Sequence[float], member: int) -> float:
    """What one member should have said: its own target if there is one for each, else the common one."""
    return target[0] if len(target) == 1 else target[member]


class DenseTable:
    """A table ensemble whose whole gradient is written out at every update.

    A row's target is a list of one number, common to all members, or of one for each.
    """

    def __init__(self, table: Sequence[Sequence[float]]) -> None:
        self.weights = [list(map(float, row)) for row in table]
        self.mean_squares = [[1.0] * len(row) for row in table]
        self.losses: list[float] = []
        self.norms: list[float] = []

    def _record(self, rows, targets, mask, normalise):
        scale = scales(mask, normalise)
        gradient = [[0.0] * len(row) for row in self.weights]
        loss = 0.0
        for row, target, keep in zip(rows, targets, mask, strict=True):
            for e, is_kept in enumerate(keep):
                if is_kept:
                    error = self.weights[row][e] - own(target, e)
                    loss += scale[e] * error**2
                    gradient[row][e] += 2 * scale[e] * error
        self.losses.append(loss)
        self.norms.append(math.sqrt(sum(g * g for row in gradient for g in row)))
        return gradient

    def sgd(self, rows, targets, mask, normalise, rate):
        gradient = self._record(rows, targets, mask, normalise)
        for r, row in enumerate(gradient):
            for e, g in enumerate(row):
                self.weights[r][e] -= rate * g

    def rmsprop(self, rows, targets, mask, normalise, rate, decay, eps):
        gradient = self._record(rows, targets, mask, normalise)
        for r, row in enumerate(gradient):
            for e, g in enumerate(row):
                self.mean_squares[r][e] = decay * self.mean_squares[r][e] + (1 - decay) * g * g
                self.weights[r][e] -= rate * g / math.sqrt(self.mean_squares[r][e] + eps)

    def delta(self, rows, targets, mask, rate):
        for row, target, keep in zip(rows, targets, mask, strict=True):
            for e, is_kept in enumerate(keep):
                if is_kept:
                    self.weights[row][e] += rate * (own(target, e) - self.weights[row][e])


class ListReplay:
    """Replay as two lists of episodes, oldest first; an episode is a list of (bytes, targets, mask) entries."""

    def __init__(self, capacity: int, solved_share: float, by_length: bool) -> None:
        self.capacity, self.solved_share, self.by_length = capacity, solved_share, by_length
        self.episodes: dict[bool, list[list[tuple]]] = {True: [], False: []}
        self.added = {True: 0, False: 0}

    def add(self, episode: list[tuple], solved: bool) -> None:
        self.episodes[solved].append(episode)
        self.added[solved] += 1
        if len(self.episodes[solved]) > self.capacity:
            del self.episodes[solved][0]

    def num_solved_of(self, batch_size: int) -> int:
        if not self.episodes[True]:
            return 0
        if not self.episodes[False]:
            return batch_size
        return int(batch_size * self.solved_share)

    def in_slots(self, solved: bool) -> list[list[tuple]]:
        """The episodes in ring order: the episode added as number i lies in slot i % capacity."""
        episodes, added = self.episodes[solved], self.added[solved]
        slots: list = [None] * len(episodes)
        for i, episode in enumerate(episodes):
            slots[(added - len(episodes) + i) % self.capacity] = episode
        return slots

    def entry(self, solved: bool, draw: Sequence[float]) -> tuple:
        episodes = self.in_slots(solved)
        if self.by_length:
            entries = [entry for episode in episodes for entry in episode]
            return entries[int(draw[0] * len(entries))]
        episode = episodes[int(draw[0] * len(episodes))]
        return episode[int(draw[1] * len(episode))]
