"""Copies of what can change in an environment: attributes of it and of its wrappers, without what all copies share."""

from __future__ import annotations

import copyreg
import io
import pickle
from itertools import chain as in_a_row
from typing import Any, NamedTuple

from bathysphere.domains.adapters.digests import GENERATORS
from bathysphere.domains.adapters.sharing import Shared


class Entangled(Exception):
    """Some attribute refers back to the environment, so that attributes cannot be copied by themselves."""


class _Home(NamedTuple):
    """An environment whose attributes are replaced."""

    chain: list[Any]
    kept: list[dict[str, Any]]  # attributes of each that are no part of copies
    reducers: dict[type, Any]  # for pickling: those of other modules, and a refusal of the chain's own types


class Attributes:
    """Pickles the attributes of an environment and its wrappers, and puts them back into the same objects.

    Attributes are pickled together, so that what several of them refer to stays one thing. Wrappers and environment
    themselves, spaces, and what never changes stay where they are; if an attribute refers to one of the former, this
    way cannot be used.

    Args:
      shared: what all copies have in common.
      without_generators: attributes that are random generators stay where they are too: something else decides them.
    """

    name = "pickling what can change"

    def __init__(self, shared: Shared, *, without_generators: bool = False) -> None:
        self._shared = shared
        self._left_out = GENERATORS if without_generators else ()
        self._homes: list[_Home] = []
        # Of homes, by the types in their chain and the names of generators left out.
        self._numbers: dict[tuple[tuple[type, ...], tuple[str, ...]], int] = {}

    def save(self, env: Any) -> bytes:
        """Returns bytes; equal ones are of equal states."""
        chain = chain_of(env)
        kept, changing = self._divided(chain)
        kinds = tuple(map(type, chain)), tuple(in_a_row.from_iterable(kept)) if self._left_out else ()
        number = self._numbers.get(kinds)
        if number is None:
            number = self._numbers[kinds] = self._settle(env)
        file = io.BytesIO()
        pickler = pickle.Pickler(file, pickle.HIGHEST_PROTOCOL)
        pickler.dispatch_table = self._homes[number].reducers
        pickler.dump((number, changing))
        return file.getvalue()

    def load(self, env: Any, saved: Any) -> Any:
        """Returns the environment that has the attributes now."""
        number, changing = pickle.loads(saved)
        home = self._homes[number]
        for thing, kept, attributes in zip(home.chain, home.kept, changing, strict=True):
            vars(thing).clear()
            vars(thing).update(kept)
            vars(thing).update(attributes)
        return home.chain[0]

    def _settle(self, env: Any) -> int:
        """Makes a copy of an environment in which its attributes will be replaced; returns its number."""
        chain = chain_of(self._shared.loads(self._shared.dumps(env)))
        kept, _ = self._divided(chain)
        self._homes.append(_Home(chain, kept, {**copyreg.dispatch_table, **dict.fromkeys(map(type, chain), _refuse)}))
        return len(self._homes) - 1

    def _divided(self, chain: list[Any]) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
        """Returns the attributes of each thing that are no part of copies, and those that are."""
        fixed, outside = self._shared.numbers, {id(thing) for thing in chain}
        kept, changing = list[dict[str, Any]](), list[dict[str, Any]]()
        for thing in chain:
            kept.append({})
            changing.append({})
            for name, value in vars(thing).items():
                stays = id(value) in fixed or id(value) in outside or isinstance(value, self._left_out)
                (kept if stays else changing)[-1][name] = value
        return kept, changing


def chain_of(env: Any) -> list[Any]:
    """Returns the wrappers, outermost first, and the environment inside, with whatever that is around."""
    found = [env]
    while hasattr(found[-1], "env") and found[-1] is not found[-1].unwrapped:
        found.append(found[-1].env)
    return found + getattr(found[-1], "layers", [])


def _refuse(thing: Any) -> Any:
    raise Entangled(f"An attribute refers to {type(thing).__name__}.")
