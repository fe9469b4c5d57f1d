"""Numbers for rows of bytes, in the order in which they come: a set that is looked up in compiled code."""

from __future__ import annotations

from typing import Any

import numba
import numpy as np
from numpy.typing import NDArray

from bathysphere.domains.base import States

_FIRST_ROOM = 1024  # rows
_PRIME, _MIX = np.uint64(0x100000001B3), np.uint64(0x9E3779B97F4A7C15)
_BASIS, _S32 = np.uint64(0xCBF29CE484222325), np.uint64(32)

compiled: Any = numba.njit(cache=True, nogil=True, error_model="numpy")


class RowIndex:
    """Distinct rows of `width` bytes, numbered from 0."""

    def __init__(self, width: int) -> None:
        self._count = 0
        self._rows: States = np.zeros((_FIRST_ROOM, width), np.uint8)
        self._entries = np.full(2 * _FIRST_ROOM, -1, np.int64)  # a power of two, at most half of it taken

    def __len__(self) -> int:
        return self._count

    @property
    def rows(self) -> States:
        """All rows in order, uint8 [len, width]: a window that shows no later ones."""
        return self._rows[: self._count]

    def find(self, rows: States) -> NDArray[np.int64]:
        """Returns the numbers of `rows`, uint8 [n, width], int64 [n]; -1 for those that never came."""
        numbers = np.empty(len(rows), np.int64)
        _find(self._rows, self._entries, np.ascontiguousarray(rows), numbers)
        return numbers

    def add(self, rows: States) -> NDArray[np.int64]:
        """Returns the numbers of `rows`, uint8 [n, width], int64 [n], new ones for those that never came."""
        needed = self._count + len(rows)
        if needed > len(self._rows):
            room = 1 << max(needed - 1, 1).bit_length()
            larger = np.zeros((room, self._rows.shape[1]), np.uint8)
            larger[: self._count] = self.rows
            self._rows, self._entries = larger, np.full(2 * room, -1, np.int64)
            _enter(self._rows, self._entries, self._count)
        numbers = np.empty(len(rows), np.int64)
        self._count = _add(self._rows, self._entries, self._count, np.ascontiguousarray(rows), numbers)
        return numbers


@compiled
def _entry_of(rows, entries, row):  # type: ignore[no-untyped-def]
    """Returns where the number of a row is, or would be, among the entries."""
    mixed = _BASIS
    for byte in row:
        mixed = (mixed ^ np.uint64(byte)) * _PRIME
    mixed = (mixed ^ (mixed >> _S32)) * _MIX
    entry = np.int64(mixed >> _S32) & (entries.shape[0] - 1)
    while entries[entry] >= 0:
        same = True
        for k in range(row.shape[0]):
            if rows[entries[entry], k] != row[k]:
                same = False
                break
        if same:
            break
        entry = (entry + 1) & (entries.shape[0] - 1)
    return entry


@compiled
def _find(rows, entries, wanted, numbers):  # type: ignore[no-untyped-def]
    """Mutates: numbers [n]."""
    for k in range(wanted.shape[0]):
        numbers[k] = entries[_entry_of(rows, entries, wanted[k])]


@compiled
def _enter(rows, entries, count):  # type: ignore[no-untyped-def]
    """Enters the first `count` rows, which are distinct. Mutates: entries, which hold nothing."""
    for number in range(count):
        entries[_entry_of(rows, entries, rows[number])] = number


@compiled
def _add(rows, entries, count, wanted, numbers):  # type: ignore[no-untyped-def]
    """Enters those of `wanted` [n] that are new. Mutates: rows, entries, numbers [n].

    Returns:
      How many rows there are now.
    """
    for k in range(wanted.shape[0]):
        entry = _entry_of(rows, entries, wanted[k])
        if entries[entry] < 0:
            entries[entry] = count
            rows[count] = wanted[k]
            count += 1
        numbers[k] = entries[entry]
    return count
