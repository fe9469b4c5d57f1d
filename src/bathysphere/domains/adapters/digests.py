"""What is in an object, in 16 bytes: equal contents give equal digests, whatever the objects' identities and histories.

Random generators do not count: whether a world depends on them is tried out (trial.py), not read off.
"""

from __future__ import annotations

import enum
import hashlib
import pickle
import random
import types
from collections import deque
from collections.abc import Collection, Iterable, Iterator, Sequence
from operator import itemgetter
from typing import Any

import numpy as np

SIZE = 16  # bytes
_REMEMBERED = 1 << 14  # parts whose digest is known by their pickled form
GENERATORS = (np.random.Generator, np.random.RandomState, np.random.BitGenerator, random.Random)


def digest(data: bytes) -> bytes:
    """Returns the digest of bytes."""
    return hashlib.blake2b(data, digest_size=SIZE).digest()


def digest_of(thing: Any) -> bytes:
    """Returns the digest of what an object holds, with everything that it refers to."""
    return _contents(thing, {})


class PartDigests:
    """Digests of objects attribute by attribute, where parts that have not changed are known by their pickled form."""

    def __init__(self) -> None:
        self._known: dict[bytes, bytes] = {}
        self._fixed: dict[int, bytes] = {}  # by the id of parts that do not change

    def of(self, objects: list[Any], fixed: Collection[int] = (), ignored: Collection[tuple[int, str]] = ()) -> bytes:
        """Returns one digest of the attributes of `objects`, which may refer to each other.

        Args:
          objects: whose attributes count.
          fixed: ids of attributes' values that stay what they are as long as this is passed.
          ignored: attributes that do not count, by the number of their object and their name.
        """
        parts = [
            self._fixed_part(value, objects) if id(value) in fixed else self._part(value, objects)
            for number, thing in enumerate(objects)
            for name, value in sorted(vars(thing).items(), key=itemgetter(0))
            if (number, name) not in ignored and not any(value is each for each in objects)
        ]
        return digest(b"".join(parts))

    def _fixed_part(self, value: Any, objects: list[Any]) -> bytes:
        part = self._fixed.get(id(value))
        if part is None:
            part = self._fixed[id(value)] = self._part(value, objects)
        return part

    def _part(self, value: Any, objects: list[Any]) -> bytes:
        """Returns bytes that stand for a part: a digest, or itself if it is short."""
        if isinstance(value, np.generic):  # written like the plain number it stands for
            value = value.item()
        if isinstance(value, _SHORT + GENERATORS) or is_description(value):
            written = list[bytes]()
            _write(value, written, {})
            return written[0]
        try:
            data = pickle.dumps(value, pickle.HIGHEST_PROTOCOL)
        except Exception:  # whatever cannot be pickled
            return _contents(value, {id(thing): number for number, thing in enumerate(objects)})
        known = self._known.get(data)
        if known is None:
            if len(self._known) >= _REMEMBERED:
                self._known.clear()
            met = {id(thing): number for number, thing in enumerate(objects)}
            known = self._known[data] = _contents(value, met)
        return known


def generators_in(*things: Any, but: Iterable[int] = ()) -> list[Any]:
    """Returns all random generators that objects refer to, each once, but not through objects with the ids `but`."""
    found, met, waiting = list[Any](), set(but), list(things)
    while waiting:
        thing = waiting.pop()
        if id(thing) in met or isinstance(thing, ATOMS):
            continue
        met.add(id(thing))
        if isinstance(thing, GENERATORS):
            found.append(thing)
        else:
            waiting.extend(_parts_of(thing))
    return found


def reseed(generators: list[Any], seed: int) -> None:
    """Sets random generators to the beginning of other streams."""
    for number, generator in enumerate(generators):
        if isinstance(generator, np.random.Generator | np.random.BitGenerator):
            bits = generator.bit_generator if isinstance(generator, np.random.Generator) else generator
            bits.state = type(bits)([seed, number]).state
        else:
            generator.seed((seed + 1_000_003 * number) % 2**32)


ATOMS = (type(None), bool, int, float, complex, str, bytes, bytearray, type, types.FunctionType, types.ModuleType)
_SHORT = (type(None), bool, int, float, str)
_SKIPPED = ("gymnasium.spaces.", "gymnasium.envs.registration")  # descriptions, no state


def is_description(thing: Any) -> bool:
    """Tells whether a thing describes an environment, and is no part of its state."""
    return type(thing).__module__.startswith(_SKIPPED)


def _contents(thing: Any, met: dict[int, int]) -> bytes:
    """Returns a digest; `met` has numbers of objects that are known from outside, by their id."""
    written = list[bytes]()
    _write(thing, written, dict(met))
    return digest(b"".join(written))


def _write(thing: Any, out: list[bytes], met: dict[int, int]) -> None:
    """Appends the contents of `thing` to `out`, in a form in which different contents differ.

    Things that can change are numbered in `met` when they are first met, and are a number afterwards: so circles end,
    and it counts whether two names stand for one thing.
    """
    kind = type(thing)
    if kind is int or kind is float or kind is bool or kind is complex:
        out.append(b"n%r;" % _plain(thing))
    elif kind is str:
        _write_bytes(b"s", thing.encode("utf-8", "surrogatepass"), out)
    elif thing is None:
        out.append(b"N")
    elif kind is bytes:
        _write_bytes(b"b", thing, out)
    elif kind is tuple:
        _write_items(b"t", thing, out, met)
    elif isinstance(thing, enum.Enum):
        _write_bytes(b"e", f"{kind.__qualname__} {thing.name}".encode(), out)
    elif isinstance(thing, np.generic):
        _write(thing.item(), out, met)
    elif isinstance(thing, type | types.FunctionType | types.BuiltinFunctionType):
        _write_bytes(b"f", f"{thing.__module__}.{thing.__qualname__}".encode(), out)
    elif isinstance(thing, types.ModuleType):
        _write_bytes(b"m", thing.__name__.encode(), out)
    elif isinstance(thing, frozenset):
        _write_items(b"S", sorted(_contents(each, met) for each in thing), out, met)
    elif isinstance(thing, GENERATORS) or is_description(thing):
        out.append(b"-")
    elif id(thing) in met:
        out.append(b"#%d;" % met[id(thing)])
    else:
        met[id(thing)] = len(met)
        _write_changeable(thing, out, met)


def _write_changeable(thing: Any, out: list[bytes], met: dict[int, int]) -> None:
    if isinstance(thing, np.ndarray) and thing.dtype != object:
        _write_bytes(b"a", f"{thing.dtype.str} {thing.shape} ".encode() + np.ascontiguousarray(thing).tobytes(), out)
    elif isinstance(thing, dict):
        keyed = sorted(((_contents(key, met), value) for key, value in thing.items()), key=itemgetter(0))
        _write_items(b"d", [part for pair in keyed for part in pair], out, met)
    elif isinstance(thing, set):
        _write_items(b"S", sorted(_contents(each, met) for each in thing), out, met)
    elif isinstance(thing, list | tuple | deque | np.ndarray):
        _write_items(b"l" + type(thing).__qualname__.encode(), list(thing), out, met)
    elif isinstance(thing, bytearray):
        _write_bytes(b"b", bytes(thing), out)
    elif isinstance(thing, types.MethodType):
        _write_items(b"o", [thing.__func__.__qualname__, thing.__self__], out, met)
    elif attributes := _attributes(thing):
        _write_bytes(b"o", type(thing).__qualname__.encode(), out)
        _write_items(b"", [part for pair in sorted(attributes.items(), key=itemgetter(0)) for part in pair], out, met)
    else:
        _write_bytes(b"o", type(thing).__qualname__.encode() + _pickled(thing), out)


def _write_items(tag: bytes, items: Sequence[Any], out: list[bytes], met: dict[int, int]) -> None:
    out.append(b"%s%d:" % (tag, len(items)))
    for item in items:
        _write(item, out, met)


def _write_bytes(tag: bytes, data: bytes, out: list[bytes]) -> None:
    out.append(b"%s%d:%s" % (tag, len(data), data))


def _pickled(thing: Any) -> bytes:
    try:
        return pickle.dumps(thing, pickle.HIGHEST_PROTOCOL)
    except Exception:  # a handle of the system: no state that could be copied
        return b""


def _plain(number: Any) -> Any:
    """Returns a number such that equal ones are written alike."""
    is_whole = isinstance(number, bool) or (isinstance(number, float) and number.is_integer())
    return int(number) if is_whole else number


def _attributes(thing: Any) -> dict[str, Any]:
    slots = [name for kind in type(thing).__mro__ for name in getattr(kind, "__slots__", ()) if isinstance(name, str)]
    found = {name: getattr(thing, name) for name in slots if not name.startswith("__") and hasattr(thing, name)}
    return found | getattr(thing, "__dict__", {})


def _parts_of(thing: Any) -> Iterator[Any]:
    if isinstance(thing, dict):
        yield from thing.values()
    elif isinstance(thing, list | tuple | set | frozenset | deque):
        yield from thing
    elif isinstance(thing, np.ndarray):
        if thing.dtype == object:
            yield from thing.flat
    elif not is_description(thing):
        yield from _attributes(thing).values()
