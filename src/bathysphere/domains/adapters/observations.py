"""Observations of an observation space as bytes of fixed length, and as what networks see of those bytes."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bathysphere.domains.adapters import digests
from bathysphere.domains.adapters.calling import shown
from bathysphere.domains.base import Categories, Features, ObservationSpec
from bathysphere.errors import WorldError

MAX_BYTES = 1 << 15  # of an observation; states of this length times the states of a search must fit into memory
_LARGEST_TABLE = 100_000  # combinations of numbers that are seen as one number
_MOST_CATEGORIES = 64  # whole numbers from 0 up to here are taken for kinds of things, larger ones for amounts
_FEWEST_PLACES = 8  # numbers of an observation that is seen as the place of its only 1
_TEXT_SYMBOLS, _TEXT_KINDS = 8, 16  # what networks see of a text: symbols that tell it from others


@dataclass(frozen=True)
class Leaf:
    """A part of an observation: an array of numbers, or a text."""

    path: tuple[Any, ...]  # keys that lead to it
    dtype: np.dtype[Any]
    shape: tuple[int, ...]
    low: int  # subtracted from categories
    counts: NDArray[np.int64] | None  # how many values each number has; None: amounts, or categories not known yet
    is_text: bool = False

    @property
    def num_bytes(self) -> int:
        """Bytes it takes in a row."""
        return self.dtype.itemsize * math.prod(self.shape)


class Layout:
    """How observations of a space are packed, and seen by networks.

    Args:
      space: of observations.
      examples: observations; what the space leaves open is taken from them: how large numbers are.
    """

    def __init__(self, space: Any, examples: Sequence[Any]) -> None:
        self._leaves = leaves_of(space)
        self.num_bytes = sum(leaf.num_bytes for leaf in self._leaves)
        rows = np.frombuffer(b"".join(map(self.pack, examples)), np.uint8).reshape(-1, self.num_bytes)
        self._scales = [_largest(values) for values in self._values(rows)]
        self._kinds = [_kinds_of(leaf, *scale) for leaf, scale in zip(self._leaves, self._scales, strict=True)]
        self.spec, self._see = self._choose(self._values(rows))

    def pack(self, observation: Any) -> bytes:
        """Returns the bytes of an observation."""
        return b"".join([_packed(leaf, _at(observation, leaf.path)) for leaf in self._leaves])

    def seen(self, rows: NDArray[np.uint8]) -> NDArray[np.generic]:
        """Returns what networks see: float32 [n, size] for Features, int32 [n, *shape] for Categories.

        Args:
          rows: uint8 [n, num_bytes or more].
        """
        return self._see(self._values(rows))

    def _values(self, rows: NDArray[np.uint8]) -> list[NDArray[Any]]:
        """Returns the numbers of each leaf, [n, count]; of texts the symbols."""
        values, at = list[NDArray[Any]](), 0
        for leaf in self._leaves:
            part = np.ascontiguousarray(rows[:, at : at + leaf.num_bytes])
            at += leaf.num_bytes
            numbers = part.view(leaf.dtype).reshape(len(rows), -1) if part.size else np.zeros((len(rows), 0))
            values.append(numbers[:, :_TEXT_SYMBOLS] % _TEXT_KINDS if leaf.is_text else numbers)
        return values

    def _choose(
        self, met: list[NDArray[Any]]
    ) -> tuple[ObservationSpec, Callable[[list[NDArray[Any]]], NDArray[np.generic]]]:
        kinds = self._kinds
        if len(met) == 1 and _are_places(met[0]):
            return Categories((1,), met[0].shape[1] + 2), self._as_place
        if all(kind is not None for kind in kinds):
            known = [kind for kind in kinds if kind is not None]
            radix = np.concatenate(known) if known else np.zeros(0, np.int64)
            is_stated = all(leaf.counts is not None for leaf in self._leaves)
            if is_stated and math.prod(radix.tolist()) <= _LARGEST_TABLE:
                return Categories((1,), max(math.prod(radix.tolist()), 1)), self._as_one
            is_array = len(self._leaves) == 1 and not self._leaves[0].is_text
            shape = self._leaves[0].shape if is_array else (len(radix),)
            if int(radix.max()) <= 2 * _MOST_CATEGORIES:
                return Categories(shape, int(radix.max())), lambda values: self._as_categories(values, shape)
        return Features(sum(_width(leaf) for leaf in self._leaves)), self._as_numbers

    def _as_place(self, values: list[NDArray[Any]]) -> NDArray[np.generic]:
        """Returns where the only 1 is; after the places come a number for nothing but zeros, and one for the rest."""
        (numbers,) = values
        counts = (numbers != 0).sum(axis=1)
        is_place = (counts == 1) & (numbers == 1).any(axis=1)
        last = np.where(counts == 0, numbers.shape[1], numbers.shape[1] + 1)
        places: NDArray[np.generic] = np.where(is_place, (numbers == 1).argmax(axis=1), last)[:, None].astype(np.int32)
        return places

    def _as_one(self, values: list[NDArray[Any]]) -> NDArray[np.generic]:
        one = np.zeros(len(values[0]) if values else 0, np.int64)
        for leaf, kinds, numbers in zip(self._leaves, self._kinds, values, strict=True):
            for column, count in enumerate(kinds if kinds is not None else ()):
                one = one * count + (numbers[:, column].astype(np.int64) - leaf.low)
        return one[:, None].astype(np.int32)

    def _as_categories(self, values: list[NDArray[Any]], shape: tuple[int, ...]) -> NDArray[np.generic]:
        parts = [
            np.clip(numbers.astype(np.int64) - leaf.low, 0, np.asarray(kinds) - 1)
            for leaf, kinds, numbers in zip(self._leaves, self._kinds, values, strict=True)
        ]
        return np.concatenate(parts, axis=1).reshape(-1, *shape).astype(np.int32)

    def _as_numbers(self, values: list[NDArray[Any]]) -> NDArray[np.generic]:
        parts = []
        for leaf, numbers, (_, largest) in zip(self._leaves, values, self._scales, strict=True):
            scale = _TEXT_KINDS if leaf.is_text else max(1.0, float(largest))
            parts.append(numbers.astype(np.float64) / scale)
        return np.concatenate(parts, axis=1).astype(np.float32)


def leaves_of(space: Any) -> list[Leaf]:
    """Returns the parts of an observation space.

    Raises:
      WorldError: if there are parts that cannot be packed, or too many.
    """
    leaves = list(_leaves(space, ()))
    num_bytes = sum(leaf.num_bytes for leaf in leaves)
    if num_bytes > MAX_BYTES:
        raise WorldError(
            "observation-too-long",
            f"An observation takes {num_bytes:,} bytes, and a search keeps thousands of them; {MAX_BYTES:,} are "
            f"possible: {shown(space)}.",
            "Ask the environment for a smaller one (of ALE: obs_type=ram), or put a wrapper around it that returns "
            "what matters.",
        )
    return leaves


def _leaves(space: Any, path: tuple[Any, ...]) -> Any:
    """Yields the parts of a space, in the order of its keys."""
    from gymnasium import spaces

    match space:
        case spaces.Dict():
            for key, inner in space.spaces.items():
                yield from _leaves(inner, (*path, key))
        case spaces.Tuple():
            for number, inner in enumerate(space.spaces):
                yield from _leaves(inner, (*path, number))
        case spaces.Discrete():
            dtype = np.dtype(np.int32 if space.n + abs(int(space.start)) < 2**31 else np.int64)
            yield Leaf(path, dtype, (1,), int(space.start), np.array([int(space.n)]))
        case spaces.MultiDiscrete():
            low = int(space.start.min())
            counts = (space.nvec + space.start - low).ravel().astype(np.int64)
            yield Leaf(path, np.dtype(np.int32), tuple(space.nvec.shape), low, counts)
        case spaces.MultiBinary():
            yield Leaf(path, np.dtype(np.int8), tuple(space.shape), 0, np.full(math.prod(space.shape), 2))
        case spaces.Box():
            yield Leaf(path, np.dtype(space.dtype), tuple(space.shape) or (1,), *_bounds(space))
        case spaces.Text():
            yield _text(path)
        case _ if isinstance(_sample(space), str):  # MiniGrid's missions
            yield _text(path)
        case _:
            raise WorldError(
                "observation-space",
                f"Observations are of the kind {shown(space)}{' at ' + str(path) if path else ''}.",
                "Spaces that can be read are Discrete, MultiDiscrete, MultiBinary, Box, Text, and Dict and Tuple of "
                "them; put a wrapper around the environment that returns one of them.",
            )


def _bounds(space: Any) -> tuple[int, NDArray[np.int64] | None]:
    """Returns the lowest number of a Box and how many there are from there, if they are few whole numbers."""
    if space.dtype.kind in "biu" and space.low.size:
        low, high = int(space.low.min()), int(space.high.max())
        if high - low < _MOST_CATEGORIES:
            return low, (space.high.astype(np.int64) - low + 1).ravel()
    return 0, None


def _text(path: tuple[Any, ...]) -> Leaf:
    return Leaf(path, np.dtype(np.uint8), (digests.SIZE,), 0, None, is_text=True)


def _sample(space: Any) -> Any:
    try:
        return space.sample()
    except Exception:  # a space of somebody's own
        return None


def _at(observation: Any, path: tuple[Any, ...]) -> Any:
    for key in path:
        try:
            observation = observation[key]
        except (KeyError, IndexError, TypeError) as error:
            raise _unexpected(observation, path) from error
    return observation


def _packed(leaf: Leaf, value: Any) -> bytes:
    if leaf.is_text:
        return digests.digest(str(value).encode("utf-8", "surrogatepass"))
    try:
        array = np.asarray(value)
        if array.dtype != leaf.dtype and array.dtype.kind not in "biuf":
            raise _unexpected(value, leaf.path)
        array = array.astype(leaf.dtype, copy=False).reshape(leaf.shape)
    except (TypeError, ValueError) as error:
        raise _unexpected(value, leaf.path) from error
    if leaf.dtype.kind == "f":
        if not np.isfinite(array).all():
            raise WorldError(
                "observation-not-finite",
                f"An observation has numbers that are not finite: {shown(value)}.",
                "Return finite numbers only; networks cannot learn from others.",
            )
        array = array + 0.0  # -0.0 is 0.0
    return array.tobytes()


def _unexpected(value: Any, path: tuple[Any, ...]) -> WorldError:
    place = f" at {'/'.join(map(str, path))}" if path else ""
    return WorldError(
        "observation-outside-its-space",
        f"An observation has {shown(value)}{place}, which is not in the environment's observation space.",
        "Mend the observation space, or what the environment returns.",
    )


def _largest(values: NDArray[Any]) -> tuple[float, float]:
    """Returns the smallest number and the largest in size."""
    return (float(values.min()), float(np.abs(values.astype(np.float64)).max())) if values.size else (0.0, 0.0)


def _are_places(values: NDArray[Any]) -> bool:
    """Tells whether each observation, [n, count], is zero but for a single 1, which is not always in one place."""
    ones = values == 1
    is_empty = ~values.any(axis=1)
    are_single = (ones.sum(axis=1) == 1) & ((values != 0).sum(axis=1) == 1)
    places = set(ones[are_single].argmax(axis=1).tolist())
    return values.shape[1] >= _FEWEST_PLACES and len(places) > 1 and bool((are_single | is_empty).all())


def _kinds_of(leaf: Leaf, smallest: float, largest: float) -> NDArray[np.int64] | None:
    """Returns how many kinds of things each number of a leaf tells apart; None if it tells amounts."""
    if leaf.is_text:
        return np.full(_TEXT_SYMBOLS, _TEXT_KINDS)
    if leaf.counts is not None:
        return leaf.counts
    if leaf.dtype.kind in "biu" and smallest >= 0 and largest < _MOST_CATEGORIES:
        # One kind more than met: it stands for all larger numbers.
        return np.full(math.prod(leaf.shape), 1 << (int(largest) + 1).bit_length())
    return None


def _width(leaf: Leaf) -> int:
    return _TEXT_SYMBOLS if leaf.is_text else math.prod(leaf.shape)
