"""Python objects as bytes, so that objects are equal if and only if their bytes are.

The form is made for short rows: a tuple of small whole numbers takes a byte for each. It describes itself and ends by
itself, so zeros may follow. Numbers that are equal are one number: True, 1, 1.0, `np.int8(1)` and an IntEnum's 1 all
come back as 1, and -0.0 as 0. Named tuples, frozen dataclasses and members of enums keep their class, arrays their type
and shape; of classes only the name is kept, and no name makes anything be imported.
"""

from __future__ import annotations

import dataclasses
import enum
import math
import struct
import sys
from collections.abc import Callable, Sequence
from itertools import chain
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bathysphere.errors import BathysphereError, WorldError

_WHOLE = {b"B": 1, b"h": 2, b"i": 4, b"q": 8}  # tuples of whole numbers, by what struct calls them: bytes each
_SMALL = ord("B")
_FIX = (
    "Build states of numbers, text, bytes, tuples, frozensets, named tuples, frozen dataclasses, enums and arrays of "
    "numbers, or give the world the methods pack(state), which returns bytes, and unpack(data), which reads them back."
)


class Packer:
    """Packs objects into bytes and back.

    Args:
      module: where classes are looked for that are read before any object of theirs was packed.
    """

    def __init__(self, module: str = "builtins") -> None:
        self._module, self._classes = module, dict[str, type]()

    def pack(self, thing: Any) -> bytes:
        """Returns the bytes of `thing`.

        Raises:
          WorldError: if something in it has no such form.
        """
        if type(thing) is tuple and len(thing) < 128:  # what most states are: as below, but faster
            try:
                return _HEADS[len(thing)] + bytes(thing)
            except (TypeError, ValueError):
                pass
        return self._packed(thing)

    def small_numbers(self, things: Sequence[Any]) -> NDArray[np.uint8] | None:
        """Returns the bytes of things, uint8 [n, any], if all are tuples of as many small whole numbers; else None.

        That is what most states are. It is what `pack` returns, but faster.
        """
        if set(map(type, things)) != {tuple} or len(lengths := set(map(len, things))) != 1:
            return None
        (length,) = lengths
        if length >= 128:
            return None
        try:
            numbers = bytes(chain.from_iterable(things))
        except (TypeError, ValueError):
            return None
        packed = np.empty((len(things), length + 2), np.uint8)
        packed[:, 0], packed[:, 1] = _SMALL, length
        packed[:, 2:] = np.frombuffer(numbers, np.uint8).reshape(len(things), length)
        return packed

    def unpack(self, data: bytes) -> Any:
        """Returns the object at the beginning of `data`; whatever follows it is ignored."""
        try:
            if data[0] == _SMALL and data[1] < 128:
                return tuple(data[2 : 2 + data[1]])
            return _Reader(data, self._class_of).thing()
        except BathysphereError:
            raise
        except Exception as error:  # whatever bytes can lead to that no object was written as
            raise WorldError(
                "unreadable-state",
                "A saved state holds bytes that stand for nothing.",
                "The file that it came from is damaged, was made up, or is of another world.",
            ) from error

    def _packed(self, thing: Any) -> bytes:
        match thing:
            case None:
                return b"N"
            case bool() | int() | np.integer() | np.bool_():
                return _pack_whole(int(thing))
            case float() | np.floating():
                return _pack_number(float(thing))
            case str():
                return b"s" + _with_length(thing.encode("utf-8", "surrogatepass"))
            case bytes():
                return b"b" + _with_length(bytes(thing))
            case enum.Enum():
                return b"e" + self._name_of(type(thing)) + _with_length(thing.name.encode())
            case tuple() if hasattr(thing, "_fields"):
                return b"n" + self._name_of(type(thing)) + self.pack(tuple(thing))
            case tuple() if type(thing) is tuple:
                return self._pack_tuple(thing)
            case frozenset():
                return b"S" + _size(len(thing)) + b"".join(sorted(map(self.pack, thing)))
            case np.ndarray():
                return _pack_array(thing)
        if dataclasses.is_dataclass(thing):
            values = tuple(getattr(thing, name) for name in _fields_of(type(thing)))
            return b"d" + self._name_of(type(thing)) + self.pack(values)
        raise _refusal(thing)

    def _pack_tuple(self, items: tuple[Any, ...]) -> bytes:
        whole = _whole_numbers(items)
        if whole is not None:
            low, high = min(whole, default=0), max(whole, default=0)
            for code, width in _WHOLE.items():
                bits = 8 * width
                bounds = (0, 255) if code == b"B" else (-(1 << (bits - 1)), (1 << (bits - 1)) - 1)
                if bounds[0] <= low and high <= bounds[1]:
                    return code + _size(len(whole)) + struct.pack(f"<{len(whole)}{code.decode()}", *whole)
        return b"t" + _size(len(items)) + b"".join(map(self.pack, items))

    def _name_of(self, kind: type) -> bytes:
        name = kind.__qualname__
        if self._classes.setdefault(name, kind) is not kind:
            raise WorldError(
                "unknown-type", f"States hold objects of two classes called {name}.", "Give one of them another name."
            )
        return _with_length(name.encode())

    def _class_of(self, name: str) -> Any:
        if name not in self._classes:
            found: Any = sys.modules.get(self._module)
            for part in name.split("."):
                found = getattr(found, part, None)
            if not isinstance(found, type):
                raise WorldError(
                    "unknown-type",
                    f"A saved state holds an object of the class {name}, which is not in the module {self._module}.",
                    "Define it beside the world, or import it there.",
                )
            self._classes[name] = found
        return self._classes[name]


class _Reader:
    """Reads things from bytes, one after the other."""

    def __init__(self, data: bytes, class_of: Any) -> None:
        self._data, self._at, self._class_of = data, 0, class_of

    def thing(self) -> Any:
        tag = self._take(1)
        match tag:
            case b"N":
                return None
            case b"I":
                return int.from_bytes(self._block(), "little", signed=True)
            case b"f":
                return struct.unpack("<d", self._take(8))[0]
            case b"s":
                return self._block().decode("utf-8", "surrogatepass")
            case b"b":
                return self._block()
            case b"e":
                return self._class(lambda kind: issubclass(kind, enum.Enum))[self._block().decode()]
            case b"n":
                return self._class(lambda kind: issubclass(kind, tuple) and hasattr(kind, "_fields"))._make(
                    self.thing()
                )
            case b"d":
                return _make_dataclass(self._class(dataclasses.is_dataclass), self.thing())
            case b"t":
                return tuple(self.thing() for _ in range(self._size()))
            case b"S":
                return frozenset(self.thing() for _ in range(self._size()))
            case b"a":
                return self._array()
        size = self._size()
        return struct.unpack(f"<{size}{tag.decode()}", self._take(size * _WHOLE[tag]))

    def _class(self, is_fitting: Callable[[type], bool]) -> Any:
        """Reads the name of a class; only one that was packed in this way is used."""
        kind = self._class_of(self._block().decode())
        if not is_fitting(kind):
            raise ValueError(f"states hold no {kind.__qualname__}")
        return kind

    def _array(self) -> Any:
        dtype = np.dtype(self._block().decode())
        shape = tuple(self._size() for _ in range(self._size()))
        # Arrays of bytes cannot be written to: a step that tries to change its state is told so by NumPy.
        return np.frombuffer(self._take(math.prod(shape) * dtype.itemsize), dtype).reshape(shape)

    def _take(self, count: int) -> bytes:
        self._at += count
        return self._data[self._at - count : self._at]

    def _size(self) -> int:
        size, shift = 0, 0
        while True:
            (byte,) = self._take(1)
            size |= (byte & 127) << shift
            if byte < 128:
                return size
            shift += 7

    def _block(self) -> bytes:
        return self._take(self._size())


def _size(count: int) -> bytes:
    """Returns a number from 0 as bytes of seven bits, the lowest first; all but the last have the eighth bit set."""
    data = bytearray()
    while count >= 128:
        data.append(count & 127 | 128)
        count >>= 7
    data.append(count)
    return bytes(data)


_HEADS = [b"B" + _size(count) for count in range(128)]  # of tuples of small numbers


def _with_length(data: bytes) -> bytes:
    return _size(len(data)) + data


def _pack_whole(number: int) -> bytes:
    return b"I" + _with_length(number.to_bytes(number.bit_length() // 8 + 1, "little", signed=True))


def _pack_number(number: float) -> bytes:
    if number.is_integer():
        return _pack_whole(int(number))
    if math.isnan(number):
        raise WorldError(
            "not-a-number",
            "A state holds NaN, which is not even equal to itself.",
            "Leave NaN out of states; None can stand for what is not known.",
        )
    return b"f" + struct.pack("<d", number)


def _whole_numbers(items: tuple[Any, ...]) -> list[int] | None:
    """Returns whole numbers as such; None if others are among the items."""
    whole = []
    for item in items:
        is_whole = isinstance(item, int | np.integer | np.bool_)
        if not is_whole and not (isinstance(item, float | np.floating) and float(item).is_integer()):
            return None
        whole.append(int(item))
    return whole


def _pack_array(array: np.ndarray[Any, Any]) -> bytes:
    if array.dtype.kind not in "biuf":
        raise WorldError(
            "unknown-type", f"A state holds an array of {array.dtype}, which cannot be packed into bytes.", _FIX
        )
    if array.dtype.kind == "f":
        if np.isnan(array).any():
            _pack_number(math.nan)
        array = array + 0.0  # no -0.0 is left
    array = array.astype(array.dtype.newbyteorder("<"), order="C")
    shape = b"".join(map(_size, (array.ndim, *array.shape)))
    return b"a" + _with_length(array.dtype.str.encode()) + shape + array.tobytes()


def _fields_of(kind: Any) -> list[str]:
    """Returns the names of a dataclass's fields, or refuses the class."""
    settings, fields = kind.__dataclass_params__, dataclasses.fields(kind)
    if not settings.frozen or not settings.eq or not all(field.compare for field in fields):
        raise WorldError(
            "unknown-type",
            f"A state holds a {kind.__qualname__}, a dataclass that can change or whose fields do not all count when "
            "two are compared.",
            "Write @dataclass(frozen=True) before it, without eq=False and compare=False.",
        )
    return [field.name for field in fields]


def _make_dataclass(kind: Any, values: tuple[Any, ...]) -> Any:
    thing = object.__new__(kind)
    for name, value in zip(_fields_of(kind), values, strict=True):
        object.__setattr__(thing, name, value)
    return thing


def _refusal(thing: object) -> WorldError:
    kind = type(thing).__qualname__
    other = {"list": "tuple", "set": "frozenset", "dict": "frozenset of its items", "bytearray": "bytes"}.get(kind)
    if other is not None:
        return WorldError(
            "unhashable-state",
            f"A state holds a {kind}, which can change, so that nothing can be remembered about it.",
            f"Return a {other} instead.",
        )
    return WorldError("unknown-type", f"A state holds a {kind}, which cannot be packed into bytes.", _FIX)
