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
from collections.abc import Iterator
from typing import Any

import numpy as np

SIZE = 16  # bytes
_REMEMBERED = 1 << 14  # parts whose digest is known by their pickled form
_GENERATORS = (np.random.Generator, np.random.RandomState, np.random.BitGenerator, random.Random)


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

    def of(self, objects: list[Any], left_out: frozenset[str] = frozenset()) -> bytes:
        """Returns one digest of the attributes of `objects`, which may refer to each other.

        Args:
          objects: whose attributes count.
          left_out: names of attributes that do not.
        """
        parts = [
            self._part(value, objects)
            for thing in objects
            for name, value in sorted(vars(thing).items())
            if name not in left_out and not any(value is each for each in objects)
        ]
        return digest(b"".join(parts))

    def _part(self, value: Any, objects: list[Any]) -> bytes:
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


def generators_in(*things: Any) -> list[Any]:
    """Returns all random generators that objects refer to, each once."""
    found, met, waiting = list[Any](), set[int](), list(things)
    while waiting:
        thing = waiting.pop()
        if id(thing) in met or isinstance(thing, _ATOMS):
            continue
        met.add(id(thing))
        if isinstance(thing, _GENERATORS):
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


_ATOMS = (type(None), bool, int, float, complex, str, bytes, bytearray, type, types.FunctionType, types.ModuleType)
_SKIPPED = ("gymnasium.spaces.", "gymnasium.envs.registration")  # descriptions, no state


def _contents(thing: Any, met: dict[int, int]) -> bytes:
    """Returns a digest; `met` numbers the objects on the way here, so that circles end."""
    if isinstance(thing, enum.Enum):
        return digest(f"enum {type(thing).__qualname__} {thing.name}".encode())
    match thing:
        case None:
            return digest(b"none")
        case str():
            return digest(b"text " + thing.encode("utf-8", "surrogatepass"))
        case bool() | int() | float() | complex():
            return digest(f"number {_plain(thing)}".encode())
        case bytes() | bytearray():
            return digest(b"bytes " + thing)
        case np.generic():
            return _contents(thing.item(), met)
        case np.ndarray() if thing.dtype != object:
            return digest(f"array {thing.dtype.str} {thing.shape} ".encode() + np.ascontiguousarray(thing).tobytes())
        case type() | types.FunctionType() | types.BuiltinFunctionType():
            return digest(f"{thing.__module__}.{thing.__qualname__}".encode())
        case types.ModuleType():
            return digest(thing.__name__.encode())
    if isinstance(thing, _GENERATORS) or type(thing).__module__.startswith(_SKIPPED):
        return digest(b"left out")
    if id(thing) in met:
        return digest(f"met {met[id(thing)]}".encode())
    met = met | {id(thing): len(met)}
    name = type(thing).__qualname__
    match thing:
        case dict():
            items = sorted(_contents(key, met) + _contents(value, met) for key, value in thing.items())
            return digest(b"dict " + b"".join(items))
        case set() | frozenset():
            return digest(b"set " + b"".join(sorted(_contents(each, met) for each in thing)))
        case list() | tuple() | deque():
            return digest(name.encode() + b" " + b"".join(_contents(each, met) for each in thing))
        case np.ndarray():
            return digest(f"array {thing.shape} ".encode() + b"".join(_contents(each, met) for each in thing.flat))
        case types.MethodType():
            return digest(thing.__func__.__qualname__.encode() + _contents(thing.__self__, met))
    attributes = _attributes(thing)
    if attributes:
        return digest(name.encode() + b" " + _contents(attributes, met))
    try:
        return digest(name.encode() + b" " + pickle.dumps(thing, pickle.HIGHEST_PROTOCOL))
    except Exception:  # a handle of the system: no state that could be copied
        return digest(name.encode())


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
    elif not type(thing).__module__.startswith(_SKIPPED):
        yield from _attributes(thing).values()
