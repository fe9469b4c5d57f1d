"""What never changes in an environment, and is therefore left out of copies: tables, spaces, descriptions."""

from __future__ import annotations

import io
import pickle
from collections.abc import Mapping, Sequence
from typing import Any

from bathysphere.domains.adapters.digests import ATOMS, GENERATORS, is_description

_PLAIN = tuple(kind for kind in ATOMS if kind is not bytearray)  # nobody can tell two equal ones apart
_LARGE = 1 << 12  # bytes from which on copying takes longer than everything else


class Shared:
    """Objects that all copies of an environment have in common.

    A copy refers to them, and to everything that they refer to, by number. So they must not change; whoever steps asks
    `has_changed` before relying on what was found meanwhile. That costs as much as pickling them once.

    Args:
      things: what is shared.
    """

    def __init__(self, things: Sequence[Any] = ()) -> None:
        self._watched = [thing for thing in things if not is_description(thing)]
        _, *inside = _Inside(list(things)).met
        self._objects = inside  # keeps them alive, so that no other object gets their ids
        self.numbers: Mapping[int, int] = {id(thing): number for number, thing in enumerate(inside)}
        self._expected = self._written()

    def has_changed(self) -> bool:
        """Tells whether anything is not as it was at first."""
        return bool(self._watched) and self._written() != self._expected

    def dumps(self, env: Any) -> bytes:
        """Returns a copy of an environment."""
        if not self._objects:
            return pickle.dumps(env, pickle.HIGHEST_PROTOCOL)
        file = io.BytesIO()
        pickler = _Numbering(file, pickle.HIGHEST_PROTOCOL)
        pickler.numbers = self.numbers
        pickler.dump(env)
        return file.getvalue()

    def loads(self, data: bytes) -> Any:
        """Returns the environment of a copy."""
        unpickler = _Finding(io.BytesIO(data))
        unpickler.objects = self._objects
        return unpickler.load()

    def _written(self) -> bytes:
        return pickle.dumps(self._watched, pickle.HIGHEST_PROTOCOL)


class Constants:
    """Attributes of which it is not known yet that they change: descriptions, and what is slow to copy.

    Args:
      chain: the objects that have them, which are themselves no constants.
    """

    def __init__(self, chain: Sequence[Any]) -> None:
        self._found: dict[tuple[int, str], tuple[Any, bytes]] = {}
        for place, thing in enumerate(chain):
            for name, value in vars(thing).items():
                written = None if isinstance(value, _PLAIN) else _alone(value, chain)
                if written is not None and (is_description(value) or len(written) >= _LARGE):
                    self._found[place, name] = value, written

    def keep_unchanged(self, chain: Sequence[Any]) -> None:
        """Forgets those that are another object by now, or have other contents."""
        self._found = {
            (place, name): (value, written)
            for (place, name), (value, written) in self._found.items()
            if vars(chain[place]).get(name) is value and _alone(value, chain) == written
        }

    def values(self) -> list[Any]:
        """Returns what has not changed."""
        return [value for value, _ in self._found.values()]


class _Inside(pickle.Pickler):
    """Lists everything that an object refers to and that has an identity of its own."""

    def __init__(self, thing: Any) -> None:
        self.met: list[Any] = []
        self._ids: set[int] = set()
        super().__init__(io.BytesIO(), pickle.HIGHEST_PROTOCOL)
        self.dump(thing)

    def persistent_id(self, thing: Any) -> None:
        if not isinstance(thing, _PLAIN) and id(thing) not in self._ids:
            self._ids.add(id(thing))
            self.met.append(thing)


class _Numbering(pickle.Pickler):
    numbers: Mapping[int, int]

    def persistent_id(self, thing: Any) -> int | None:
        return self.numbers.get(id(thing))


class _Finding(pickle.Unpickler):
    objects: Sequence[Any]

    def persistent_load(self, number: int) -> Any:
        return self.objects[number]


def _alone(value: Any, chain: Sequence[Any]) -> bytes | None:
    """Returns the pickled form of a thing; None if it refers to wrappers, environment or random generators."""
    try:
        inside = _Inside(value).met
        written = pickle.dumps(value, pickle.HIGHEST_PROTOCOL)
    except Exception:  # whatever cannot be pickled
        return None
    outside = {id(thing) for thing in chain}
    if any(id(thing) in outside for thing in inside):
        return None
    if not is_description(value) and any(isinstance(thing, GENERATORS) for thing in inside):
        return None
    return written
